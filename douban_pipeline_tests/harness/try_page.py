"""Compares the figures of ``docs/try.md`` with what ``make demo`` printed; for ``.ci/run``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "try.md"
_SHOWN = re.compile(r"^```text\n(This run\n.*?)^```", re.MULTILINE | re.DOTALL)


def differences(page: str, printed: str) -> Iterator[str]:
    """Yield the lines of a page's excerpt that the demo did not print; all of it if the page has none.

    Blanks are no difference: tables are as wide as their terminal.
    """
    found = _SHOWN.search(page)
    if found is None:
        yield "no excerpt of the demo"
        return
    said = {" ".join(line.split()) for line in printed.splitlines()}
    for line in found[1].splitlines():
        if line.strip() != "…" and " ".join(line.split()) not in said:
            yield line


def main(arguments: list[str]) -> int:
    """Print the differences between the page and the file of the demo's output; return 1 if there are any."""
    printed = Path(arguments[0]).read_text(encoding="utf-8")
    wrong = list(differences(PAGE.read_text(encoding="utf-8"), printed))
    for each in wrong:
        sys.stderr.write(f"docs/{PAGE.name}: {each} is not what the demo printed\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
