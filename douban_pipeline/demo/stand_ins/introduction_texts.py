"""Composes an introduction of the simulated model: the given facts, and neutral sentences about mood; pure.

A sentence is composed of parts, each chosen from alternatives by a random generator seeded with the facts: the same
fact sheet always gives the same text, and two films rarely share more than a few consecutive characters. The neutral
sentences name no person, number, place or date, so that they fit any film of the genre.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from douban_pipeline.demo.sample import read_data

PHRASES: Mapping[str, Any] = read_data("phrases.json")
"""Moods by genre, moods for any other genre, manners, and frames: parts of neutral sentences with their alternatives.

They name no person, number, place, date or work, state nothing about awards, ratings or platforms, and fit any film,
so that a text composed of them and of the facts contains no invention.
"""

Facts = Mapping[str, Any]
"""A fact sheet as sent to the model: ``title``, ``year``, ``regions``, ``genres``, ``directors`` …"""

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")

Length = tuple[int, int]
LENGTH: Length = (120, 300)
"""Minimum and maximum number of Chinese characters, if the request states none."""

_KINDS = {"film": "电影", "series": "剧集", "variety": "综艺节目", "animation": "动画", "documentary": "纪录片",
          "short": "短片", "movie": "电影", "tv": "剧集"}  # fmt: skip


def han(text: str) -> int:
    """Return the number of Chinese characters in ``text``."""
    return len(_HAN.findall(text))


def introduction(facts: Facts, length: Length = LENGTH, salt: str = "") -> str:
    """Return an introduction that contains only ``facts`` and moods.

    Args:
        facts: The fact sheet.
        length: Minimum and maximum number of Chinese characters; room is left for one more sentence.
        salt: Changes the wording only.
    """
    rng = seeded(facts, salt)
    least, most = length
    sentences = _factual(facts, rng)
    while len(sentences) > 1 and han("".join(sentences)) > most:
        sentences.pop()
    aim = least + round((most - least) * rng.uniform(0.15, 0.45))
    return fill(sentences, facts, rng, aim)


def fill(sentences: Sequence[str], facts: Facts, rng: Random, aim: int) -> str:
    """Return a text of ``sentences`` and neutral sentences between them.

    Args:
        sentences: Required sentences, without full stops; the first one stays first.
        facts: The fact sheet; only the genres are used here.
        rng: Random generator.
        aim: Number of Chinese characters to reach.
    """
    frames = rng.sample(PHRASES["frames"], len(PHRASES["frames"]))
    neutral: list[str] = []
    while han("".join([*sentences, *neutral])) < aim:
        neutral.append(_neutral(frames[len(neutral) % len(frames)], facts, rng))
    lead, *rest = sentences
    cut = rng.randint(0, len(neutral))
    return "。".join([lead, *neutral[:cut], *rest, *neutral[cut:]]) + "。"


def seeded(facts: Facts, salt: str) -> Random:
    """Return a generator that is reproducible for the same facts and salt, in every process."""
    return Random(json.dumps([facts, salt], ensure_ascii=False, sort_keys=True))


def names(facts: Facts, key: str) -> list[str]:
    """Return a list of the fact sheet, ``[]`` if it is missing."""
    value = facts.get(key)
    return [str(item) for item in value if item] if isinstance(value, list | tuple) else []


def _factual(facts: Facts, rng: Random) -> list[str]:
    people = [*_directors(facts, rng), *_cast(facts, rng)]
    lead = _lead(facts, rng)
    sentences = [f"{lead}，{'，'.join(people)}"] if people and rng.random() < 0.6 else [lead, "，".join(people)]
    sentences += [*_size(facts, rng), *_other_title(facts, rng), *_beginning(facts, rng)]
    return [sentence for sentence in sentences if sentence]


def _lead(facts: Facts, rng: Random) -> str:
    title = f"《{facts.get('title') or '本片'}》"
    year = f"{facts['year']}年" if facts.get("year") else ""
    kind = str(facts.get("kind") or "")
    kind = _KINDS.get(kind, kind or "作品")
    regions = names(facts, "regions")[:2]
    genres = [genre for genre in names(facts, "genres")[:3] if genre != kind]
    where = rng.choice(("与", "和", "、")).join(regions)
    of = "、".join(genres)
    what = rng.choice((f"{of}{kind}", f"{of}题材{kind}", f"{of}类{kind}")) if of else kind
    when = f"{year}的" if year else ""
    manner = rng.choice(PHRASES["manners"])
    forms = [
        f"{title}是一部{when}{where}{what}",
        f"{when}{where}{what}{title}，{manner}",
        f"作为一部{when}{where}{what}，{title}{manner}",
        f"{title}是{when}{what}" + (f"，{rng.choice(('来自', '出自'))}{where}" if where else ""),
        f"这部{when}{what}名为{title}" + (f"，制作地区为{where}" if where else ""),
    ]
    return rng.choice(forms)


def _directors(facts: Facts, rng: Random) -> list[str]:
    directors = "、".join(names(facts, "directors")[:2])
    forms = (f"由{directors}执导", f"导演是{directors}", f"{directors}担任导演", f"执导者为{directors}")
    return [rng.choice(forms)] if directors else []


def _cast(facts: Facts, rng: Random) -> list[str]:
    actors = "、".join(names(facts, "actors")[: rng.randint(2, 4)])
    forms = (f"{actors}参与演出", f"主演包括{actors}", f"{actors}出演主要角色", f"演员有{actors}", f"{actors}等人出演")
    return [rng.choice(forms)] if actors else []


def _size(facts: Facts, rng: Random) -> list[str]:
    episodes, minutes = facts.get("episodes"), facts.get("duration_minutes")
    said = [rng.choice((f"全剧共{episodes}集", f"篇幅为{episodes}集", f"一共{episodes}集"))] if episodes else []
    if minutes:
        each = "每集" if episodes else ""
        said.append(each + rng.choice((f"片长{minutes}分钟", f"时长{minutes}分钟", f"时长约{minutes}分钟")))
    return ["，".join(said)] if said and rng.random() < 0.7 else []


def _other_title(facts: Facts, rng: Random) -> list[str]:
    titles = [name for name in (*names(facts, "aliases"), str(facts.get("original_title") or "")) if name]
    plain = [
        name
        for name in titles
        if len(name) <= 24 and name != facts.get("title") and not re.search(r"[()（）《》/]", name)
    ]
    if not plain or rng.random() < 0.5:
        return []
    return [rng.choice(("又名《{}》", "另有译名《{}》", "也叫《{}》")).format(rng.choice(plain))]


def _beginning(facts: Facts, rng: Random) -> list[str]:
    first = re.split(r"[，。；！？、,.;!?\s]", str(facts.get("synopsis") or ""))[0]
    if not 4 <= han(first) == len(first) <= 10 or rng.random() < 0.4:
        return []
    return [
        rng.choice(("“{}”，便是故事的起点", "一切要从“{}”说起", "开端可以概括为“{}”", "“{}”引出了后来的事")).format(
            first
        )
    ]


def _neutral(frame: Sequence[Sequence[str]], facts: Facts, rng: Random) -> str:
    genres = names(facts, "genres")
    moods = [mood for genre in genres for mood in PHRASES["moods"].get(genre, ())] or PHRASES["any_mood"]
    first, second = rng.sample(moods, 2)
    text = "".join(rng.choice(part) for part in frame)
    return text.format(m=first, n=second, g=rng.choice(genres) if genres else "这类")
