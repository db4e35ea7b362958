"""The golden titles, line by line, and what holds of every title."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.matching import normalise, parse_title, readings
from douban_pipeline.matching.text import narrow, simplify
from douban_pipeline.matching.titles import ParsedTitle, wider_readings

FILE = Path(__file__).with_name("data") / "titles.tsv"


@dataclass(frozen=True, slots=True)
class Golden:
    """One line of the file."""

    line: int
    title: str
    base: str
    number: str
    editions: str
    year: str
    display: str
    others: tuple[str, ...]
    wider: tuple[str, ...]


def read() -> list[Golden]:
    found = []
    for line, text in enumerate(FILE.read_text(encoding="utf-8").split("\n"), start=1):
        if not text or text == "#" or text.startswith("# "):
            continue
        title, base, number, editions, year, display, others, wider, *rest = [*text.split("\t"), *[""] * 7][:9]
        assert not any(rest), f"line {line} has too many columns"
        found.append(
            Golden(
                line=line,
                title=title,
                base=normalise(base or title),
                number=number,
                editions=editions,
                year=year,
                display=display or simplify(narrow(title)),
                others=tuple(map(comparable, filter(None, others.split("; ")))),
                wider=tuple(map(comparable, filter(None, wider.split("; ")))),
            )
        )
    return found


def comparable(reading: str) -> str:
    """Normalise the name at the start of ``name #number [editions] @year``."""
    name = min((reading.partition(mark)[0] for mark in (" #", " [", " @")), key=len)
    return normalise(name) + reading[len(name) :]


def written(reading: ParsedTitle) -> str:
    number = "" if reading.number is None else f" #{reading.number}"
    editions = f" [{','.join(sorted(reading.editions))}]" if reading.editions else ""
    return f"{reading.base}{number}{editions}" + (f" @{reading.year}" if reading.year else "")


GOLDEN = read()


def read_as(golden: Golden) -> Golden:
    """Return the line of the file that the title is read as."""
    first, *others = readings(golden.title)
    return Golden(
        line=golden.line,
        title=golden.title,
        base=first.base,
        number="" if first.number is None else f"{first.number_kind} {first.number}",
        editions=",".join(sorted(first.editions)),
        year=str(first.year or ""),
        display=first.display,
        others=tuple(map(written, others)),
        wider=tuple(sorted(map(written, wider_readings(golden.title)))),
    )


def test_golden_titles():
    read_otherwise = [
        f"line {golden.line}: {found}, expected {wanted}"
        for golden in GOLDEN
        if (found := read_as(golden)) != (wanted := replace(golden, wider=tuple(sorted(golden.wider))))
    ]
    assert not read_otherwise, "\n".join(read_otherwise)


def test_the_file_is_large_enough_to_mean_something_and_says_nothing_twice():
    assert len(GOLDEN) >= 500
    assert len({golden.title for golden in GOLDEN}) == len(GOLDEN)


TITLES = st.sampled_from([golden.title for golden in GOLDEN])
TAILS = st.lists(
    st.sampled_from(
        [
            *(
                " HD",
                " BD1080P",
                " HD1280高清国语中字",
                " 更新至12集",
                " 全76集",
                " 中英双字",
                "[HD中字]",
                "[国语中字]",
                "（4K）",
            ),
            *(
                " 4K",
                " 蓝光",
                " 超清",
                " 已完结",
                "【完结】",
                " 在线观看",
                " 抢先版",
                " 国粤双语中字",
                "[1080P]",
                " WEB-DL",
            ),
            *("(第12集)", " 枪版", "[01-12]", ".mp4"),
        ]
    ),
    max_size=2,
).map("".join)


def names_something(title: str) -> bool:
    return any(char.isalnum() for char in title)


@given(TITLES, TAILS)
def test_junk_at_the_end_changes_neither_name_nor_number(title, tail):
    clean, dirty = parse_title(title), parse_title(title + tail)
    if names_something(title):
        assert (dirty.base, dirty.number, dirty.number_kind) == (clean.base, clean.number, clean.number_kind)


@given(st.tuples(TITLES, TAILS).map("".join))
def test_what_is_displayed_reads_like_the_title(title):
    parsed = parse_title(title)
    again = parse_title(parsed.display)
    assert again.display == parsed.display
    assert (again.base, again.number) == (parsed.base, parsed.number)


PIECES = [
    "《",
    "》",
    "(",
    ")",
    "[",
    "【",
    "】",
    "「",
    "/",
    " ",
    ":",
    "，",
    "第二季",
    "第3期",
    "第12集",
    "2",
    "Ⅱ",
    "2019",
    "剧场版",
    "HD",
    "The",
]


@given(
    st.one_of(
        TITLES,
        st.text(max_size=40),
        st.tuples(TITLES, st.text(max_size=8)).map("".join),
        st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    )
)
def test_every_reading_has_a_name_and_comes_once(title):
    found = readings(title)
    assert len(set(found)) == len(found)
    for reading in (*found, *wider_readings(title)):
        assert reading.number is None or reading.number >= 0
        assert bool(reading.base) == bool(normalise(title)) or "《" in title
        assert reading.raw == title


@pytest.mark.parametrize(
    ("title", "episodes", "complete"),
    [
        ("三体 全30集", (1, 30), True),
        ("三体30集全", (1, 30), True),
        ("三体 (30集全 完结)", (1, 30), True),
        ("三体 更新至12集", (12, 12), False),
        ("三体更新至【12】", (12, 12), False),
        ("三体 第12集", (12, 12), False),
        ("三体 第12-13集", (12, 13), False),
        ("三体[01-12]", (1, 12), False),
        ("中餐厅 第九季 第3期", (3, 3), False),
        ("《西游降魔》42集全", (1, 42), True),
        ("三体", None, False),
        ("我的朋友很少 第0话", None, False),
    ],
)
def test_episodes_are_kept(title, episodes, complete):
    parsed = parse_title(title)
    assert (parsed.episodes, parsed.complete) == (episodes, complete)


def test_a_wider_reading_is_never_a_reading():
    for golden in GOLDEN:
        bases = {reading.base for reading in readings(golden.title)}
        assert bases.isdisjoint(reading.base for reading in wider_readings(golden.title))
