"""False statements that are put among those of a text, so that a reader that finds a basis for anything is found out.

Whoever says yes to all, quotes at random or quotes what is most alike also finds a basis for these; then nothing of the
reading counts. One is made of the source itself: two people exchanged, or an action denied. The other tells of an event
that the source has no word of.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from random import Random

from douban_pipeline.douban.intros.factguard.passages import Story
from douban_pipeline.douban.intros.factguard.polarity import denies_anything
from douban_pipeline.douban.intros.factguard.story_people import ROLES

_EVENTS = (
    ("怀表", "把祖传的怀表当给了渡口的船老大"),
    ("风筝", "为捡一只断线的风筝爬上了钟楼"),
    ("热气球", "驾着热气球飞过了海峡"),
    ("烟花", "在仓库里囤了三车受潮的烟花"),
    ("鹦鹉", "花重金买下一只会报时的鹦鹉"),
    ("棺木", "给自己订了一口楠木的棺木"),
    ("彩票", "靠一张中奖的彩票还清了赌债"),
    ("瓜田", "放火烧掉了邻村的瓜田"),
    ("胡琴", "用一把胡琴换回了两袋大米"),
    ("灯谜", "在灯谜会上当众认输"),
)
"""Events with their telling word; a source that has the word gets another."""
_NOBODY = "主人公"
_MUTUAL = re.compile("[和与跟同及互相]|一起|双方|两人|二人")
"""Marks of an action that is as true with its people exchanged."""
_LONGEST = 24
_NO_VERB = re.compile(
    "^(?:[的和与跟同及是为们家之时后前却也又还都就便才只早已身]|一[直边面]|其实|原来|曾|开始)|[时后前]$|那[天年夜晚]$"
)
"""Rests of a clause that cannot be denied by 没有 in front of them."""
_DONE = re.compile("(?<=^.)了|(?<=^..)了(?!解)")


def controls_of(story: Story, text: str) -> tuple[str, ...]:
    """Return two false statements for a text, each a sentence; the same ones for the same text and source."""
    random = Random(hashlib.sha256(f"{story.source}\n{text}".encode()).digest())
    turned = list(_exchanged(story)) or list(_denied(story))
    people = [name for name in story.cast.names if name in story.source]
    who = max(people, key=story.source.count, default=_NOBODY)
    unheard = [who + event for word, event in _EVENTS if word not in story.source]
    return tuple([*random.sample(turned, min(1, len(turned))), *random.sample(unheard, 2)][:2])


def _exchanged(story: Story) -> Iterator[str]:
    """Yield clauses of the source in which one acts on another, with the two exchanged."""
    for clause, acts in zip(story.clauses, story.acts, strict=True):
        mentions = story.cast.mentions(clause)
        if len(mentions) != 2 or _MUTUAL.search(clause) or not 4 <= len(clause) <= _LONGEST:
            continue
        (start, end, one), (start_two, end_two, other) = mentions
        direct = len(acts) == 1 and acts[0].agents == (one,) and other in acts[0].patients
        if start == 0 and direct and not ROLES & {one, other} and not story.cast.same(one, other):
            yield other + clause[end:start_two] + one + clause[end_two:]


def _denied(story: Story) -> Iterator[str]:
    """Yield clauses of the source that begin with who acts, with the action denied."""
    for clause in story.clauses:
        for start, end, name in story.cast.mentions(clause)[:1]:
            rest = clause[end:]
            able = start == 0 and name not in ROLES and 3 <= len(rest) <= _LONGEST and not _NO_VERB.search(rest)
            if able and not denies_anything(clause):
                yield f"{name}没有{_DONE.sub('', rest, count=1)}"
