"""Videos and subjects drawn by Hypothesis: few names, so that they often meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from douban_pipeline.matching import Kind, Subject, Video
from douban_pipeline_tests.matching.cases import FILM, FILM_SUBJECT, SERIES, SERIES_SUBJECT, THIN, THIN_SUBJECT

WORDS = st.sampled_from(["战狼", "战狼2", "英雄", "庆余年 第二季", "2046", "歌手2024", "碟仙2019", "？？", "A", ""])
NAMES = st.lists(st.sampled_from(["姜文", "李安", "让-吕克·戈达尔", "Ang Lee", "岩井俊二"]), max_size=4).map(tuple)
KNOWN = {
    "title": WORDS,
    "aliases": st.lists(WORDS, max_size=2).map(tuple),
    "year": st.none() | st.integers(1900, 2030),
    "kind": st.none() | st.sampled_from(Kind),
    "regions": st.lists(st.sampled_from(["大陆", "香港", "美国", "其它", "欧美", "火星"]), max_size=3).map(tuple),
    "directors": NAMES,
    "actors": NAMES,
    "genres": st.lists(st.sampled_from(["剧情", "动作片", "动漫", "国产"]), max_size=3).map(tuple),
    "duration_minutes": st.none() | st.integers(1, 300),
    "episodes": st.none() | st.integers(1, 100),
}
VIDEOS = st.builds(Video, vod_id=st.just(1), **KNOWN)
SUBJECTS = st.builds(
    Subject,
    douban_id=st.integers(1, 9),
    original_title=WORDS,
    release_years=st.lists(st.integers(1900, 2030), max_size=2).map(tuple),
    rating=st.none() | st.floats(0, 10),
    serial=st.none() | st.booleans(),
    fetched=st.booleans(),
    **KNOWN,
)

_OF_SUBJECTS = {**KNOWN, "fetched": st.booleans(), "serial": st.none() | st.booleans(), "douban_id": st.integers(1, 9)}
_PAIRS = ((FILM, FILM_SUBJECT), (SERIES, SERIES_SUBJECT), (THIN, THIN_SUBJECT))
_Work = TypeVar("_Work", Video, Subject)


def _changed(
    draw: Callable[..., Any], work: _Work, fields: Mapping[str, st.SearchStrategy[Any]], most: int = 2
) -> _Work:
    names = draw(st.lists(st.sampled_from(sorted(fields)), max_size=most, unique=True))
    return replace(work, **{name: draw(fields[name]) for name in names})


@st.composite
def matches(draw: Callable[..., Any]) -> tuple[Video, list[Subject]]:
    """Return a video, and candidates of which the first differs little from it: most gates are passed, one is not."""
    video, subject = draw(st.sampled_from(_PAIRS))
    near = _changed(draw, subject, _OF_SUBJECTS)
    rivals = draw(st.lists(SUBJECTS, max_size=2))
    if draw(st.booleans()):
        rivals.append(replace(_changed(draw, subject, _OF_SUBJECTS), douban_id=1))
    return _changed(draw, video, KNOWN), [near, *rivals]
