"""Checks whether quoted passages of a source say what a sentence says: who does what to whom, how many, and whether.

A reader that quotes anything passes a check that only looks the passage up. Here the sentence is compared with the
passage: enough of its words are in it, it names the same people in the same roles, with the same numbers, and what is
denied or has the opposite outcome in the one is so in the other. What the wording does not show stays unseen: a motive
or a mood in few words, or who is meant by 她.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.douban.intros.factguard.number_mentions import (
    Number,
    number_mentions,
    numbers_of,
    ungrounded_numbers,
)
from douban_pipeline.douban.intros.factguard.plain_text import letters_of, plain, sentences_of, shown
from douban_pipeline.douban.intros.factguard.plot_lexicon import CLAUSE, GAP, Backing, Word, share_of, words_of
from douban_pipeline.douban.intros.factguard.plot_roles import Act, acts_of
from douban_pipeline.douban.intros.factguard.plot_support import tells_plot
from douban_pipeline.douban.intros.factguard.plot_words import COMMENTARY
from douban_pipeline.douban.intros.factguard.story_people import RELATIVES, ROLES, Cast, cast_of
from douban_pipeline.douban.intros.facts import FactSheet

LEAST_SHARE = 0.33
"""Least share of a sentence's words that its passages must have: of 459 faithful sentences with their best passages
one in a hundred has less, of passages taken at random seven in ten."""
LEAST_CLAUSE_SHARE = 0.2
"""The same for a clause of which more than `MOST_NEW` characters are new."""
MOST_NEW = 6
SAME_ACTION, LEAST_TOLD = 0.5, 2.0
"""Share and number of a clause's characters in a clause of the source from which both may tell the same action."""
SURELY_SAME = ((0.6, 3.0), (0.5, 5.0))
"""The same from which they do."""
LEAST_QUOTED = 4
"""Least number of characters of a clause in a quote that quotes the clause; a shorter clause must be whole."""


@dataclass(frozen=True, slots=True)
class Story:
    """A source and a text, prepared for the comparison of sentences with passages.

    Attributes:
        source: The source.
        sentences: Its sentences, each as its clauses.
        clauses: All its clauses, in order.
        places: The number of the sentence of each clause.
        acts: Who does what in each clause.
        said: Who does what in the text, by sentence and clause.
        cast: The people of both.
        names: People and titles of the fact sheet, which need no passage; the longest first.
        words: What needs none either: titles, genres, regions.
        numbers: The numbers of the fact sheet apart from the synopsis.
        minutes: The work's duration.
    """

    source: str
    sentences: tuple[tuple[str, ...], ...]
    clauses: tuple[str, ...]
    places: tuple[int, ...]
    acts: tuple[tuple[Act, ...], ...]
    said: tuple[tuple[tuple[Act, ...], ...], ...]
    cast: Cast
    names: tuple[str, ...]
    words: str
    numbers: tuple[Number, ...]
    minutes: int | None

    @classmethod
    def of(cls, sheet: FactSheet, text: str) -> Story:
        """Prepare the synopsis of a fact sheet and a text that was written from it."""
        told, said = plain(sheet.synopsis), plain(text)
        sentences = tuple(tuple(CLAUSE.findall(each)) for each in sentences_of(told))
        said_sentences = [CLAUSE.findall(each) for each in sentences_of(said)]
        cast = cast_of(told, said)
        said_acts = iter(acts_of(said_sentences, cast))
        forms = {form for name in (*sheet.people, *sheet.titles) if len(form := plain(name)) > 1}
        return cls(
            source=told,
            sentences=sentences,
            clauses=tuple(clause for clauses in sentences for clause in clauses),
            places=tuple(place for place, clauses in enumerate(sentences) for _ in clauses),
            acts=tuple(acts_of(sentences, cast)),
            said=tuple(tuple(next(said_acts) for _ in clauses) for clauses in said_sentences),
            cast=cast,
            names=tuple(sorted(forms, key=len, reverse=True)),
            words="\n".join(map(plain, (*sheet.titles, *sheet.genres, *sheet.regions))),
            numbers=tuple(numbers_of(sheet, (*sheet.titles, *sheet.genres, *sheet.regions))),
            minutes=sheet.duration_minutes,
        )

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The names that need no word in a passage, since they are compared as names."""
        return (*self.names, *self.cast.names)

    def quoted(self, quotes: Sequence[str]) -> list[int] | None:
        """Return the numbers of the clauses that quotes hold, None if a quote is not in the source."""
        letters = [letters_of(clause) for clause in self.clauses]
        whole = "".join(letters)
        found: set[int] = set()
        for quote in map(letters_of, quotes):
            start = whole.find(quote)
            if start < 0:
                return None
            end, at = start + len(quote), 0
            for number, clause in enumerate(letters):
                shared = min(end, at + len(clause)) - max(start, at)
                if shared > 0 and shared >= min(LEAST_QUOTED, len(clause)):
                    found.add(number)
                at += len(clause)
        return sorted(found)

    def beside(self, one: str, other: str) -> bool:
        """Return whether one sentence of the source names both."""
        return any(one in told and other in told for told in map(GAP.join, self.sentences))

    def distinct(self, one: str, other: str) -> bool:
        """Return whether two names are known to be two people: both are proper names, or one sentence has both."""
        return (one not in ROLES and other not in ROLES) or self.beside(one, other)

    def meet(self, ones: Iterable[str], others: Sequence[str]) -> bool:
        """Return whether somebody is in both lists."""
        return any(self.cast.same(one, other) for one in ones for other in others if one and other)


def tells_story(sentence: str, story: Story) -> bool:
    """Return whether a sentence tells what happens, so that it needs a passage, and not only of the work itself."""
    if tells_plot(sentence, story.source, story.names):
        return True
    said = plain(sentence)
    for name in story.names:
        said = said.replace(name, GAP)
    if any(word in said for word in COMMENTARY):
        return False
    given = Backing.of(story.words)
    return bool(story.cast.mentions(said)) or any(
        word.strict and given.backs(word) < 1 for word in words_of(said, (), given)
    )


def passage_problem(number: int, sentence: str, story: Story, clauses: Sequence[int]) -> str:
    """Return why the quoted clauses do not say what a sentence says, in Chinese; "" if nothing speaks against it.

    Args:
        number: Which sentence of the text it is, from 0.
        sentence: The sentence.
        story: The source and the text.
        clauses: The quoted clauses.
    """
    return next(_problems(number, sentence, story, clauses), "")


def _problems(number: int, sentence: str, story: Story, clauses: Sequence[int]) -> Iterator[str]:
    said, told = plain(sentence), [story.clauses[each] for each in clauses]
    passage = Backing.of("\n".join((*told, story.words)))
    by_clause = {clause: list(words_of(clause, story.unsaid, passage)) for clause in CLAUSE.findall(said)}
    if share_of([word for words in by_clause.values() for word in words], passage) < LEAST_SHARE:
        yield "所引原文讲的不是这句话"
    for clause, words in by_clause.items():
        if _new(words, passage) > MOST_NEW and share_of(words, passage) < LEAST_CLAUSE_SHARE:
            yield f"所引原文没有讲到“{shown(clause, 20)}”"
    around = {place for each in clauses for place in (story.places[each] - 1, story.places[each]) if place >= 0}
    context = "\n".join(clause for place in sorted(around) for clause in story.sentences[place])
    for name in _missing(said, context, story):
        yield f"所引原文没有提到“{shown(name)}”"
    for piece in ungrounded_numbers(sentence, (*story.numbers, *number_mentions(context)), story.minutes):
        if any(mention.kind for mention in number_mentions(piece)):
            yield f"所引原文没有数字“{shown(piece)}”"
    acts = [act for each in clauses for act in story.acts[each]]
    for clause_acts in story.said[number]:
        for act in clause_acts:
            yield from _contradictions(act, acts, story)
    for clause in by_clause:
        word = opposite(clause, told)
        if word:
            yield f"与所引原文相反：“{shown(word)}”"


def _new(words: Iterable[Word], passage: Backing) -> int:
    return sum(len(word.text) for word in words if not passage.backs(word))


def _missing(said: str, context: str, story: Story) -> Iterator[str]:
    """Yield the people in a sentence whom neither the passage nor the sentence before it names.

    A relative may be told in other words (父女 for 女儿), and whom the source never names is the fact guard's concern.
    """
    near = [name for _, _, name in story.cast.mentions(context)]
    for _, _, name in story.cast.mentions(said):
        if name not in RELATIVES and name in story.source and not story.meet([name], near):
            yield name


def _contradictions(act: Act, quoted: Sequence[Act], story: Story) -> Iterator[str]:
    """Yield what the quoted acts say otherwise of an action, the first; nothing if one of them confirms it."""
    problems: list[str] = []
    for source in quoted:
        backing = Backing.of(source.words)
        words = list(words_of(act.words, story.unsaid, backing))
        told, share = sum(len(word.text) * backing.backs(word) for word in words), share_of(words, backing)
        if told < LEAST_TOLD or share < SAME_ACTION:
            continue
        sure = any(share >= least and told >= number for least, number in SURELY_SAME)
        others = _others(act, source, story, sure=sure)
        unlike = any(act.agents) and any(source.agents) and others is not None
        if others:
            problems.append(f"人物对不上：这里是“{shown(others[0])}”，原文是“{shown(others[1])}”")
        elif not unlike and (denies(act.words, source.words) or denies(source.words, act.words)):
            problems.append(f"与所引原文相反：“{shown(act.words, 20)}”")
        elif others is None:
            return
    yield from problems[:1]


def _others(act: Act, source: Act, story: Story, *, sure: bool) -> tuple[str, ...] | None:
    """Return who is in a role here and who in the source; empty if that is not known, None if the same person acts."""
    mine, theirs = act.agents, source.agents
    if act.pivot != source.pivot:
        mine = (*mine, *(act.patients if act.pivot else ()))
        theirs = (*theirs, *(source.patients if source.pivot else ()))
    if story.meet(mine, theirs):
        pairs = _pairs(act.patients, source.patients)
        apart = pairs and not story.meet(act.patients, source.patients) and all(story.distinct(*each) for each in pairs)
        return pairs[-1] if sure and apart else None
    if not mine or not theirs or act.unknown or act.taken_over:
        return ()
    if any(mine) and story.meet(act.agents, source.patients):
        return _first(act.agents), _first(source.agents)
    told_by_whom = not act.pivot and not act.received and not source.taken_over
    if told_by_whom and story.meet(theirs, act.patients):
        return _first(act.agents), _first(source.agents)
    if denies_anything(act.words) != denies_anything(source.words):
        return ()
    pairs = _pairs(mine, theirs)
    if sure and any(story.distinct(*each) for each in pairs):
        return pairs[-1]
    if pairs and not source.taken_over and all(story.beside(*each) for each in pairs):
        return pairs[-1]
    return ()


def _pairs(ones: Iterable[str], others: Sequence[str]) -> list[tuple[str, str]]:
    return [(one, other) for one in ones for other in others if one and other]


def _first(names: Sequence[str]) -> str:
    return next(filter(None, reversed(names)), "另一个人")


_NOT = re.compile(
    "(?:不|没有?人?|未|无法|无人)(?:曾|再|肯|想|愿|能|敢|会|让|许|准|去|人|(?:把|将|对|向|给|和|与|跟|为|替)[^不没未]{1,4})?"
    "(?=[^了着过的])"
)
_NO_NOT = re.compile(
    "淹没|沉没|埋没|吞没|出没|没收|没落|不得不|不仅|不但|不久|不断|不过|无论|没想到|不料|不少|不同|不禁|未来|未婚|不顾|不惜|不停"
    "|不安|不幸|不知"
)
_DENIED = re.compile("(?:不|没有?|未|无|从没|别|并非|没能)(?:曾|再|肯|想|愿|能|敢|会|让|许|准|有|去|把|将|对)?$")
_ENDED = frozenset("断绝停止失缺拒忘难免戒禁反空否假败")
"""Characters with which a clause may deny without a word like 不."""
_NO_ACTION = frozenset("有是在到来去人一错")
"""Characters that are no action by themselves."""
_OPPOSITES_TEXT = """
赢 胜 战胜 击败 夺冠 获胜 / 输 落败 失利 败给
活着 生还 幸存 救活 活了下来 / 死去 死了 死于 身亡 丧生 遇难 牺牲 去世 病逝 尸体 骸骨
好转 痊愈 康复 病愈 好了 好起来 / 恶化 病重 不见好
答应 同意 批准 允许 应允 / 拒绝 不肯 不愿
相信 听信 / 怀疑 疑心 不信
抓住 被捕 落网 抓获 制服 / 逃走 逃脱 逃跑 跑掉 跑了
留下 留在 / 离开 离去 走了 休学
收下 / 退还 不肯收
考上 考取 录取 / 落榜
得奖 获奖 / 取消资格
开始 继续 / 停止 终止 中止
有罪 被判 / 无罪
兴高采烈 高兴 欣喜 大笑 笑着 笑了 / 哭着 哭诉 流泪 流着泪 含泪
爱上 喜欢 / 不喜欢 讨厌 恨
伪造 冒充 假的 伪 / 真的 为真 是真
运出 送出 / 运进 运来
买下 买来 / 卖掉 变卖
真心 / 假意
之前 前夜 前夕 / 之后
"""
OPPOSITES = tuple(
    (tuple(left.split()), tuple(right.split()))
    for line in _OPPOSITES_TEXT.strip().splitlines()
    for left, right in [line.split("/")]
)
"""Pairs of outcomes that exclude each other."""


def denies_anything(clause: str) -> bool:
    """Return whether something is denied in a clause."""
    return bool(_NOT.search(_NO_NOT.sub("|", clause)))


def denies(one: str, other: str) -> bool:
    """Return whether a clause denies an action that another, which denies nothing, tells."""
    one, other = _NO_NOT.sub("|", one), _NO_NOT.sub("|", other)
    if _ENDED & set(other) or _NOT.search(other):
        return False
    for match in _NOT.finditer(one):
        action = one[match.end() : match.end() + 2]
        forms = [action] if action[0] in _NO_ACTION or action[-1] == "错" else [action, action[0]]
        if any(form in other and not _DENIED.search(other[: other.find(form)]) for form in forms):
            return True
    return False


def opposite(clause: str, quoted: Sequence[str]) -> str:
    """Return the word of a clause whose opposite the quoted clauses have in its place, "" if there is none."""
    told = "|".join(quoted)
    for pair in OPPOSITES:
        here, there = _sides(clause, pair), _sides(told, pair)
        if len(here) == 1 and there and not here & there:
            return next(word for side in pair for word in side if word in clause)
    return ""


def _sides(text: str, pair: tuple[tuple[str, ...], tuple[str, ...]]) -> set[int]:
    """Return which sides of a pair a text is on; a word that is denied stands on the other side."""
    sides: set[int] = set()
    for side, words in enumerate(pair):
        for word in words:
            at = text.find(word)
            while at >= 0:
                sides.add(side ^ bool(_DENIED.search(text[:at])))
                at = text.find(word, at + 1)
    return sides
