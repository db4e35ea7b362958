"""How much disk the archive takes: Douban's answers and pages of searches, as they are kept."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import MetaData, insert, text

from douban_pipeline.demo.stand_ins.answers import douban_answer, search_answer
from douban_pipeline.douban.sources.douban_php import PARSER_VERSION, SOURCE
from douban_pipeline_tests.harness.benchmarks.measuring import SMALL, Figure, Measure, Target, World
from douban_pipeline_tests.harness.benchmarks.planting import Searches, snapshot_row, spread

ANSWERS = 100_000
"""Answers that the figure is told for."""

_PUT = 10_000
"""Videos whose answers are put in, if there are as many."""

_PIECE = 500


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer of an upstream, and what was asked."""

    source: str
    key: str
    body: bytes
    parser_version: str


def archive_size(world: World) -> list[Figure]:
    """Put answers as runs get them into the archive's table, made anew, and look how large it is."""
    services = world.services
    vod_ids = spread(world.size, _PUT)
    snapshot = services.tables.snapshot
    empty = f"{snapshot.name}_empty"
    raw = packed = count = 0
    with services.engine.connect() as connection:
        # A table of the same form, so that what is there already does not count.
        connection.execute(text(f"DROP TABLE IF EXISTS {empty}"))
        connection.execute(text(f"CREATE TABLE {empty} LIKE {snapshot.name}"))
        try:
            into, rows = snapshot.to_metadata(MetaData(), name=empty), list[dict[str, Any]]()
            for asked in _answers(world, vod_ids):
                count += 1
                raw, packed = raw + len(asked.body), packed + len(zlib.compress(asked.body, 9))
                rows.append(snapshot_row(services, count, asked.source, asked.key, asked.body, asked.parser_version))
                if len(rows) == _PIECE:
                    connection.execute(insert(into), rows)
                    connection.commit()
                    rows = []
                    world.say(f"{count:,} answers kept")
            if rows:
                connection.execute(insert(into), rows)
                connection.commit()
            disk = _bytes(connection, empty)
        finally:
            connection.execute(text(f"DROP TABLE {empty}"))
    scale = ANSWERS / count / 1e6
    return [
        Figure(
            f"per {ANSWERS:,} answers",
            disk * scale,
            "MB",
            Target(most=200),
            packed * scale,
            "the bytes alone, each answer by zlib at its hardest",
            f"from {count:,} answers, {raw / count:,.0f} bytes each as they came ({raw * scale:.0f} MB in all)",
        )
    ]


def _answers(world: World, vod_ids: list[int]) -> Iterator[_Asked]:
    searches, seen = Searches(world.seed, vod_ids), set[int]()
    for vod_id in vod_ids:
        found = searches.candidates(vod_id)
        works = [each.work for each in found]
        query = f"{works[0]['title'] if works else vod_id} 豆瓣"
        known = frozenset(each.douban_id for each in found)
        body = search_answer(query, works, known).body
        yield _Asked("searxng", f"search:{vod_id}:{query}", body, "searxng-1")
        for each in found:
            if each.fetched and each.douban_id not in seen:
                seen.add(each.douban_id)
                yield _Asked(SOURCE, f"subject:{each.douban_id}", douban_answer(each.work).body, PARSER_VERSION)


def _bytes(connection: Any, table: str) -> int:
    connection.execute(text(f"OPTIMIZE TABLE {table}")).all()
    connection.execute(text(f"ANALYZE TABLE {table}")).all()
    query = text(
        "SELECT data_length + index_length FROM information_schema.tables "
        "WHERE table_schema = DATABASE() AND table_name = :name"
    )
    return int(connection.execute(query, {"name": table}).scalar_one())


MEASURES: tuple[Measure, ...] = (
    Measure("archive-size", "disk that the archive of raw answers takes", archive_size, (SMALL,)),
)
