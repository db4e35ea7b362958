"""Counts the rooms of the package and the tests, and fails where one is above its budget in pyproject.toml.

Lines are those of all source text; statements are those of Python without imports and docstrings, so that nobody writes
denser lines.

    python .ci/size.py            the table; exit 1 above a budget
    python .ci/size.py --budget   the budget as it would be with what is there, for pyproject.toml
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCES = {".py", ".js", ".css", ".html", ".j2"}
PACKAGE, TESTS = "douban_pipeline", "douban_pipeline_tests"
Size = tuple[int, int, int]
"""Lines, statements, files."""


def statements(text: str) -> int:
    """Return the number of statements, without imports and docstrings."""
    found = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom):
            found += not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    return found


def room_of(path: Path) -> str:
    """Return the room of a file: its folder below package or tests; in `douban`, the folder below that."""
    top, *folders = path.relative_to(PROJECT).parent.parts
    if top == TESTS:
        return "/".join([top, *folders[:1]]) if folders[:1] in (["harness"], ["stand_ins"], ["tools"]) else top
    return "/".join([top, *folders[: 2 if folders[:1] == ["douban"] else 1]])


def sizes() -> dict[str, Size]:
    """Return the size of each room."""
    rooms: dict[str, Size] = {}
    for path in sorted(path for top in (PACKAGE, TESTS) for path in (PROJECT / top).rglob("*")):
        if path.suffix in SOURCES and path.is_file():
            text = path.read_text(encoding="utf-8")
            lines, count, files = rooms.get(room_of(path), (0, 0, 0))
            count += statements(text) if path.suffix == ".py" else 0
            rooms[room_of(path)] = lines + text.count("\n"), count, files + 1
    return rooms


def total(rooms: dict[str, Size], top: str = "") -> Size:
    """Return the sum of the rooms of package or tests, or of both."""
    chosen = [size for name, size in rooms.items() if not top or name.split("/")[0] == top]
    return sum(each[0] for each in chosen), sum(each[1] for each in chosen), sum(each[2] for each in chosen)


def rows(rooms: dict[str, Size], budget: dict[str, list[int]]) -> Iterator[tuple[str, Size, list[int], bool]]:
    """Yield each room with its size, its budget and whether it is above that; a room without one has none to spend."""
    for name in sorted(rooms.keys() | budget.keys()):
        size, limit = rooms.get(name, (0, 0, 0)), budget.get(name, [0, 0])
        yield name, size, limit, size[0] > limit[0] or size[1] > limit[1]


def main() -> int:
    """Print the table; return the exit status."""
    rooms = sizes()
    if "--budget" in sys.argv[1:]:
        for name in sorted(rooms):
            print(f'"{name}" = [{rooms[name][0]}, {rooms[name][1]}]')
        return 0
    with (PROJECT / "pyproject.toml").open("rb") as file:
        tool = tomllib.load(file)["tool"]["size"]
    print(f"{'room':<36}{'lines':>9}{'budget':>9}{'statements':>12}{'budget':>9}{'files':>7}")
    above = []
    for name, (lines, count, files), (most, most_statements), is_above in rows(rooms, tool["rooms"]):
        print(f"{name:<36}{lines:>9,}{most:>9,}{count:>12,}{most_statements:>9,}{files:>7}{'  above' * is_above}")
        above += [name] * is_above
    for name, size in ((PACKAGE, total(rooms, PACKAGE)), (TESTS, total(rooms, TESTS)), ("both", total(rooms))):
        print(f"{'= ' + name:<36}{size[0]:>9,}{'':>9}{size[1]:>12,}{'':>9}{size[2]:>7}")
    print(
        "reserve: "
        + ", ".join(f"{name} {lines:,} lines, {count:,} statements" for name, (lines, count) in tool["reserve"].items())
    )
    for name in above:
        print(f"{name} is above its budget: take out as much, or draw from the reserve and say so", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
