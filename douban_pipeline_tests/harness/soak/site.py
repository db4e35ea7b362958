"""What a living site does to its videos, one act at a time, each recorded, and what its sources tell of a video.

Every act is one that the CMS, a collector or another program is known to do; what matters is which columns it writes
and whether it bumps `vod_time`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any, Protocol

from douban_pipeline.demo.cms_schema import VOD_COLUMNS
from douban_pipeline.demo.library import escape_as_cms
from douban_pipeline_tests.harness.generated.videos import video_of, work_id_of
from douban_pipeline_tests.harness.generated.works import known, subject_id_of
from douban_pipeline_tests.harness.soak.outside import Outside, Row, now

_WIDEST_CHARACTER = 0xFFFF
"""utf8mb3 holds no character above it."""


class Source(Protocol):
    """Where rows come from."""

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return a video as it is collected: all columns, as the CMS stores them."""

    def subject(self, vod_id: int) -> int:
        """Return the Douban id that is right for a video, 0 if Douban does not know it."""


class Generated:
    """The generated library as a source."""

    def __init__(self, seed: int, now: datetime) -> None:
        self.seed, self.now = seed, now

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return a video as it is collected: all columns, as the CMS stores them."""
        return as_stored(video_of(vod_id, self.seed, self.now))

    def subject(self, vod_id: int) -> int:
        """Return the Douban id that is right for a video, 0 if Douban does not know it."""
        work_id = work_id_of(vod_id, self.seed)
        return subject_id_of(work_id) if known(work_id, self.seed) else 0


def as_stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as the CMS stores it: escaped and cut, without characters that its tables cannot hold."""
    widths = {column.name: column.width for column in VOD_COLUMNS}
    stored: dict[str, Any] = {column.name: column.fallback for column in VOD_COLUMNS}
    for name, value in row.items():
        if isinstance(value, str):
            fitting = "".join(sign if ord(sign) <= _WIDEST_CHARACTER else "?" for sign in value)
            width = widths.get(name)
            value = escape_as_cms(fitting, width) if width else fitting
        stored[name] = value
    return stored


COLLECTOR, ADMIN, PROGRAM = "collector", "admin", "program"

_TEXTS = ("vod_director", "vod_actor", "vod_area", "vod_lang", "vod_tag", "vod_sub", "vod_writer")
_TEXTS_TOO = ("vod_year", "vod_content", "vod_blurb", "vod_total", "vod_isend", "vod_state", "vod_version")
_UPDATED = (*_TEXTS, *_TEXTS_TOO)
"""What the collector's update rules replace by a value of the source that is not empty."""

_NOT_IN_FORM = (
    *("vod_time", "vod_time_add", "vod_time_hits", "vod_time_make", "vod_recycle_time"),
    *("vod_hits", "vod_hits_day", "vod_hits_week", "vod_hits_month"),
)
_SIBLINGS = {6: 7, 7: 6, 8: 9, 9: 8, 10: 11, 11: 10, 13: 14, 14: 13, 15: 16, 16: 15}
_FORGIVEN_SCORE = 9.9


class Site:
    """The acts."""

    def __init__(self, outside: Outside, source: Source, rng: Random) -> None:
        self.outside, self.source, self.rng = outside, source, rng
        self.forms: list[tuple[int, dict[str, Any]]] = []
        """Edit forms that somebody has open: the video, and all fields as they were."""

    def arrive(self, vod_id: int, like: int | None = None) -> bool:
        """Let a row come in under a new key, told by the source as ``vod_id``, or as the video ``like`` once was."""
        row = self.source.row(like or vod_id)
        # A source may hand in a time of long ago for a row that is new.
        moment = now() if self.rng.random() < 0.9 else row["vod_time"]
        return self.outside.insert(COLLECTOR, "collected", {**row, "vod_id": vod_id, "vod_time": moment})

    def collect(self, vod_id: int) -> int:
        """Let the collector bring a video again, with every update rule on."""
        source_row = self.source.row(vod_id)
        if self.rng.random() < 0.3:
            names = source_row["vod_actor"].split(",")
            source_row["vod_actor"] = ",".join(names[1:] + names[:1])

        def update(row: Row) -> Mapping[str, Any]:
            if row["vod_lock"]:
                return {}
            episode = self.rng.randint(1, 60)
            new = {name: source_row[name] for name in _UPDATED if source_row[name] not in ("", 0)}
            new |= {"vod_serial": str(episode), "vod_remarks": f"更新至第{episode:02d}集", "vod_time": now()}
            classes = [*row["vod_class"].split(","), *source_row["vod_class"].split(",")]
            new["vod_class"] = ",".join(dict.fromkeys(filter(None, classes)))[:255]
            if source_row["vod_pic"] and (not row["vod_pic"] or row["vod_pic"].startswith("http")):
                new["vod_pic"] = source_row["vod_pic"]
            return new

        return self.outside.change(COLLECTOR, "updated", [vod_id], update)

    def open_form(self, vod_id: int) -> int:
        """Let somebody open the edit form of a video, and leave it open for a while."""
        row = self.outside.row(vod_id)
        if row is not None:
            self.forms.append((vod_id, row))
        return int(row is not None)

    def save_form(self) -> int:
        """Let somebody save a form that was open for a while: all its fields, as they were when it was opened."""
        vod_id, seen = self.forms.pop(self.rng.randrange((len(self.forms) + 1) // 2))
        fields = {name: value for name, value in seen.items() if name not in (*_NOT_IN_FORM, "vod_id")}
        fields["vod_level"] = self.rng.randint(0, 8)
        # "更新时间" is ticked unless somebody takes the tick away.
        if self.rng.random() < 0.8:
            fields["vod_time"] = now()
        return self.outside.change(ADMIN, "saved a form that was open", [vod_id], lambda row: fields)

    def edit_in_batch(self, vod_ids: Sequence[int]) -> int:
        """Let somebody tick videos in the list and change them all; `vod_time` stays."""
        kind = self.rng.choice(("level", "type", "tag"))
        level, tag = self.rng.randint(0, 8), self.rng.choice(("热播", "经典", "推荐"))

        def edit(row: Row) -> Mapping[str, Any]:
            if kind == "type":
                return {"type_id": _SIBLINGS.get(row["type_id"], row["type_id"])}
            return {"vod_level": level} if kind == "level" else {"vod_tag": tag}

        return self.outside.change(ADMIN, f"changed the {kind} of several", vod_ids, edit)

    def set_id(self, vod_id: int, other: int) -> int:
        """Let somebody type the id of a subject: the right one, that of the video ``other``, or none."""
        right, wrong = self.source.subject(vod_id), self.source.subject(other)
        douban_id = self.rng.choice((right, right, wrong, 0))
        fields = {"vod_douban_id": douban_id, **({"vod_time": now()} if self.rng.random() < 0.7 else {})}
        return self.outside.change(ADMIN, "typed a Douban id", [vod_id], lambda row: fields)

    def toggle_lock(self, vod_id: int) -> int:
        """Let somebody lock a row in the CMS, or unlock it; `vod_time` stays."""
        return self.outside.change(ADMIN, "toggled vod_lock", [vod_id], lambda row: {"vod_lock": 1 - row["vod_lock"]})

    def recycle(self, vod_id: int) -> int:
        """Let somebody put a video into the recycle bin; `vod_time` stays."""
        moment = now()
        return self.outside.change(ADMIN, "put into the bin", [vod_id], lambda row: _unless(row, moment))

    def bring_back(self, vod_id: int) -> int:
        """Let somebody take a video out of the recycle bin; `vod_time` stays."""
        return self.outside.change(ADMIN, "took out of the bin", [vod_id], lambda row: {"vod_recycle_time": 0})

    def delete(self, vod_id: int) -> int:
        """Let somebody delete a video for good."""
        return int(self.outside.delete(ADMIN, "deleted", vod_id) is not None)

    def write_directly(self, vod_id: int) -> int:
        """Let another program write into the table; it knows of no `vod_time`."""
        source_row = self.source.row(vod_id)
        score = round(self.rng.uniform(1, _FORGIVEN_SCORE), 1)
        choices: tuple[Mapping[str, Any], ...] = (
            {"vod_douban_score": score},
            {"vod_score": score},
            {"vod_content": source_row["vod_content"], "vod_blurb": source_row["vod_blurb"]},
            {"vod_content": f"<p>另一个程序写的简介 {self.rng.randint(1, 10**6)}</p>"},
            {"vod_pic": f"https://img.example.org/{vod_id}-{self.rng.randint(1, 99)}.jpg"},
            {"vod_director": source_row["vod_director"]},
            {"vod_area": self.rng.choice(("大陆", "香港", "美国", "日本"))},
            {"vod_pubdate": source_row["vod_pubdate"] or source_row["vod_year"]},
        )
        columns = self.rng.choice(choices)
        return self.outside.change(PROGRAM, f"wrote {', '.join(columns)}", [vod_id], lambda row: columns)


def _unless(row: Row, moment: int) -> Mapping[str, Any]:
    return {} if row.get("vod_recycle_time", moment) else {"vod_recycle_time": moment}
