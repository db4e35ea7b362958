"""Builds the queries about a video for a search engine and for Douban's own suggestions."""

from __future__ import annotations

from collections.abc import Iterable

from douban_pipeline.matching.facts import Kind, Video
from douban_pipeline.matching.people import names
from douban_pipeline.matching.text import narrow, normalise, script, simplify
from douban_pipeline.matching.titles import lone_mark, parse_title, readings, wider_readings

SUBJECT_SITE = "site:movie.douban.com/subject"

_MOST_OF_TITLE = 3
"""Most readings of the title, first alias included, that are sent to Douban's suggestions."""

MOST_ALIASES = 2
"""Most further aliases."""

MOST_SUGGESTIONS = _MOST_OF_TITLE + MOST_ALIASES
"""Most titles sent to Douban's suggestions for one video."""

_KIND_WORDS = {
    Kind.FILM: "电影",
    Kind.SERIES: "电视剧",
    Kind.VARIETY: "综艺",
    Kind.ANIMATION: "动画",
    Kind.DOCUMENTARY: "纪录片",
    Kind.SHORT: "短片",
}


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def search_queries(video: Video) -> tuple[str, ...]:
    """Return the plan's query forms for a web search engine, without duplicates; the first is the broadest.

    ``片名 豆瓣``, ``片名 年份 site:movie.douban.com/subject``, ``片名 导演或主演 豆瓣 subject``. Unknown parts are
    left out; without people the kind replaces them.
    """
    title = parse_title(video.title)
    year = video.year or title.year
    people = [*names(video.directors)[:1], *names(video.actors)[:1]][:1]
    if not people and video.kind is not None:
        people = [_KIND_WORDS[video.kind]]
    return _unique(
        (
            f"{title.display} 豆瓣",
            " ".join([title.display, *([str(year)] if year else []), SUBJECT_SITE]),
            " ".join([title.display, *people, "豆瓣 subject"]),
        )
    )


def suggest_queries(video: Video) -> tuple[str, ...]:
    """Return plain titles for Douban's suggestions, at most five, the likeliest to find it first.

    In order: the cleaned title; the Hong Kong and Taiwan form, where the site uses it; the first alias; the bare name,
    which finds all related works; readings that omit words; further aliases, Chinese ones first, since those are
    Douban's titles.
    """
    found = readings(video.title)
    written = narrow(video.title)
    texts = [found[0].display, *([written] if simplify(written) != written else [])]
    aliases = [alias for alias in video.aliases if lone_mark(alias) is None]
    texts += [parse_title(alias).display for alias in aliases[:1]]
    texts += [reading.name or reading.base for reading in found]
    texts += [reading.name for reading in wider_readings(video.title)]
    seen = {normalise(text) for text in texts}
    further = {normalise(text): text for text in (parse_title(alias).display for alias in reversed(aliases[1:]))}
    others = [text for key, text in reversed(further.items()) if key not in seen]
    others.sort(key=lambda text: script(text) != "han")
    return _unique((*_unique(texts)[:_MOST_OF_TITLE], *others[:MOST_ALIASES]))
