"""A pattern is skipped only where it cannot match."""

from __future__ import annotations

from douban_pipeline.matching import title_editions, title_numbers, title_words
from douban_pipeline.matching.pattern_ends import ANYTHING, ends

PATTERNS = [
    *title_words.JUNK,
    *title_words.EPISODES,
    *(edition.words for edition in title_editions.EDITIONS),
    *(word.words for word in title_numbers.NUMBER_SUFFIXES),
]
TAILS = [
    "HD",
    "1080P",
    "4K",
    "BluRay",
    "WEB-DL",
    "hdtv",
    "remux",
    "x264",
    "h265.aac-GROUP",
    "mkv",
    "mp4",
    "dvd版",
    "中字",
    "国语",
    "国粤双语",
    "蓝光",
    "更新至12集",
    "全30集",
    "第3集",
    "E05",
    "1-12全",
    "国语版",
    "修复版",
    "3D版",
    "imax版",
    "剧场版",
    "ova版",
    "OVA",
    "specials",
    "特别篇",
    "最终季",
    "season",
    "全集",
    "合集",
    "上部",
    "纯享版",
    "plus",
    "mv",
    "新版",
    "第二季",
    "第3期",
    "2季",
    "三",
    "II",
    "S02",
    "s2e10",
    "R2",
    "第三部",
    "之章",
    "III",
    "ten",
    "之二",
    "20240315期",
    "1-3部",
]


def test_no_match_is_passed_over():
    titles = [
        title
        for tail in TAILS
        for title in (tail, f"战狼 {tail}", f"战狼{tail}", f"Wolf {tail}", f"战狼 第二季 {tail}")
    ]
    cuts = sorted({title[:length] for title in titles for length in range(1, len(title) + 1)})
    passed_over = [
        (pattern.source, cut)
        for pattern in PATTERNS
        if (known := ends(pattern.source)) is not ANYTHING
        for cut in cuts
        if cut[-1].casefold() not in known and pattern.pattern.search(cut)
    ]
    assert not passed_over
