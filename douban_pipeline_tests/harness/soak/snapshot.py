"""How the whole library stood at one moment: every column of every video, as comparable texts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sqlalchemy import Engine, inspect, text

from douban_pipeline_tests.harness.soak.values import NO_ROW, canonical

_PAGE = 1000


@dataclass
class Snapshot:
    """The videos of a library.

    Attributes:
        columns: All columns of the CMS's table but the key.
        rows: What they held, by video, in the order of ``columns``.
    """

    columns: tuple[str, ...]
    rows: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def take(cls, engine: Engine, prefix: str = "mac_") -> Self:
        """Read the library while nobody writes to it."""
        taken = cls(columns_of(engine, prefix))
        # Most values of a library are alike: each is kept once.
        known: dict[str, str] = {}
        for vod_id, values in stream(engine, prefix, taken.columns):
            taken.rows[vod_id] = tuple(known.setdefault(value, value) for value in values)
        return taken

    def value(self, vod_id: int, column: str) -> str:
        """Return what a column of a video held; `values.NO_ROW` where there was no such video."""
        row = self.rows.get(vod_id)
        return NO_ROW if row is None else row[self.columns.index(column)]

    def save(self, path: Path) -> None:
        """Write it to a file, one line a video."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
            file.write(json.dumps(self.columns) + "\n")
            for vod_id, values in self.rows.items():
                file.write(json.dumps([vod_id, *values], ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        with gzip.open(path, "rt", encoding="utf-8") as file:
            taken = cls(tuple(json.loads(file.readline())))
            for line in file:
                vod_id, *values = json.loads(line)
                taken.rows[vod_id] = tuple(values)
        return taken


def columns_of(engine: Engine, prefix: str) -> tuple[str, ...]:
    """Return the columns of the CMS's table of videos, without the key, as they stand in it."""
    found = (column["name"] for column in inspect(engine).get_columns(f"{prefix}vod"))
    return tuple(name for name in found if name != "vod_id")


def stream(engine: Engine, prefix: str, columns: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield every video with what its ``columns`` hold, by key."""
    names = ", ".join(f"`{name}`" for name in columns)
    query = text(f"SELECT vod_id, {names} FROM `{prefix}vod` WHERE vod_id > :last ORDER BY vod_id LIMIT :page")
    last = 0
    while True:
        with engine.connect() as connection:
            page = connection.execute(query, {"last": last, "page": _PAGE}).all()
        for vod_id, *values in page:
            yield vod_id, tuple(map(canonical, columns, values))
        if len(page) < _PAGE:
            return
        last = page[-1][0]
