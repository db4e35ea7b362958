"""Parameters of a request of a reader: of its address and its form together, as readers send either."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl

from fastapi import Request


class Parameters:
    """Named values, of which a name may have several.

    Args:
        pairs: Names and values in order.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name."""
        return self._values.get(name, [default])[0]

    def all(self, name: str) -> list[str]:
        """Return every value of a name."""
        return self._values.get(name, [])

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return the first value as a whole number; ``default`` if there is none. Some readers send fractions."""
        text = self.get(name).strip().partition(".")[0]
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else default


async def read_parameters(request: Request) -> Parameters:
    """Return the parameters of a request; what is not UTF-8 is replaced. The service limits the body's size."""
    pairs = parse_qsl(request.url.query, keep_blank_values=True)
    if request.method == "POST":
        pairs += parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    return Parameters(pairs)
