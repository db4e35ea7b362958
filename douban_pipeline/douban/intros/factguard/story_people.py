"""Who is named in a story, and which names are one person. Derived from the wording of source and text alone.

Names may have any form: short words that return in both texts at the places where names stand, and designations of
people such as 船长 or 继父.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from douban_pipeline.douban.intros.factguard.name_words import (
    COMPOUND_SURNAMES,
    ORDINARY_NAMES,
    STRONG_SURNAMES,
    WORD_TAILS,
)
from douban_pipeline.douban.intros.factguard.plain_text import clauses_of
from douban_pipeline.douban.intros.factguard.plot_words import AGENTS, COMMENTARY, PLAIN

_LONGEST = 4
_MOST_FOLLOWERS = 3
"""Number of different characters behind a word from which it is whole."""
_NEVER_FIRST = frozenset(
    "的了着过是在有和与他她它们这那其并却便就又也还只但而于从当每没不被把将为以里上下一二三四五六七八九十两"
    "两各该此同因由向到给让对从要再最更很都才已可能会需得"
)
_NEVER_LAST = frozenset("的了着过是在有和与们这那其并却便就又也还只但而于从当每没不被把将为以里上下由向到给让对要再说")
_ROLES_TEXT = """
继父 继母 生父 生母 养父 养母 岳父 岳母 公公 婆婆 儿媳 女婿 孙女 孙子 外婆 外公 祖父 祖母 祖父母 叔父 叔叔 舅舅 姑姑
表弟 表哥 表妹 表姐 堂兄 堂弟 侄子 侄女 外甥 外甥女 未婚夫 未婚妻 前妻 前夫 太太 长子 次子 长女 独子 大儿子 小女儿
搭档 同事 邻居 同桌 同伴 队友 战友 对手 上线 师兄 师弟 师姐 师妹 学徒 弟子 徒弟 房东 院长 校长 厂长 站长 村长 班长
局长 经理 秘书 副官 教官 教练 老板娘 管家 掌门 国手 考官 推官 捕快 县太爷 将军 督军 船长 警长 民警 法官 证人 助手
机器人 道士 酋长 庄家 开发商 公司 书生 举人 寡妇 汉奸 买家 卖家 失主 农户 工头 小工 护士长 主唱 鼓手 歌手 导游 家长
"""
ROLES = frozenset((*_ROLES_TEXT.split(), *(role for role in AGENTS if len(role) > 1 and role[0] not in "他她二两三")))
"""Designations of people; unlike a name, one may designate different people in different sentences."""
_RELATIVES_TEXT = """
父亲 母亲 儿子 女儿 丈夫 妻子 哥哥 弟弟 姐姐 妹妹 爷爷 奶奶 继父 继母 生父 生母 养父 养母 岳父 岳母 公公 婆婆 儿媳 女婿
孙女 孙子 外婆 外公 祖父 祖母 叔父 叔叔 舅舅 姑姑 表弟 表哥 表妹 表姐 侄子 侄女 外甥 外甥女 未婚夫 未婚妻 前妻 前夫 太太
长子 次子 长女 独子 搭档 同事 邻居 同桌 同伴 队友 战友 对手 上线 徒弟 弟子 学徒 师父 秘书 管家 家人 亲人 恋人 同学
"""
RELATIVES = frozenset(_RELATIVES_TEXT.split())
_KIN_TEXT = """
父亲 母亲 儿子 女儿 丈夫 妻子 哥哥 弟弟 姐姐 妹妹 爷爷 奶奶 外公 外婆 祖父 祖母 叔叔 舅舅 姑姑 孙子 孙女
"""
KIN = frozenset(_KIN_TEXT.split())
"""Relatives whom no text may add."""
_PEOPLE_END = frozenset("员长师匠官爷婶兵警")
_TITLES = "阿老小"
_THINGS = frozenset("街镇岛屋店楼家城山村河湖船车院宅房校板人钟猫狗孩茶棉路树桥说米时名区厂飞机相")
"""Characters behind 老 and 小 that make no name."""
_IN_NO_NAME = frozenset("给请把被在了着过的是不没与向为让教送说找带要去来进出")
_JOIN = ("是", "就是", "叫", "名叫")


@dataclass(frozen=True, slots=True)
class Cast:
    """The people of a source and a text.

    Attributes:
        names: Their names and designations, the longest first.
        person: Maps each name to the names that are the same person, itself included.
    """

    names: tuple[str, ...]
    person: dict[str, frozenset[str]]

    def same(self, one: str, other: str) -> bool:
        """Return whether two names are one person's, as far as the wording says so."""
        return one in other or other in one or other in self.person.get(one, ())

    def mentions(self, text: str) -> list[tuple[int, int, str]]:
        """Return start, end and name of the people in a text, in order; of overlapping names the longer."""
        found: list[tuple[int, int, str]] = []
        for name in self.names:
            for match in re.finditer(re.escape(name), text):
                if not any(match.start() < end and start < match.end() for start, end, _ in found):
                    found.append((match.start(), match.end(), name))
        return sorted(found)


_LONGEST_KNOWN = 8


def cast_of(source: str, text: str, known: Collection[str] = ()) -> Cast:
    """Return the people of a source and a text, both in the form of `plain`.

    Args:
        source: The source.
        text: The text.
        known: Further names that somebody found in the source; what it does not have is left out.
    """
    clauses = [*clauses_of(source), *clauses_of(text)]
    roles = {role for role in ROLES if role in source or role in text}
    roles |= set(_designations(clauses))
    given = {name for name in known if 2 <= len(name) <= _LONGEST_KNOWN and name in source and "的" not in name}
    found = given | {name for name in _names(clauses, roles) if not any(name in role for role in roles)}
    names = {name for name in found if not any(name != other and name.endswith(other) for other in found)}
    every = tuple(sorted((*names, *roles), key=lambda name: (-len(name), name)))
    return Cast(every, _persons(every, names, clauses_of(source), clauses_of(text)))


def _designations(clauses: Sequence[str]) -> Iterator[str]:
    """Yield words of two or three characters that end like an occupation and return in the texts."""
    both = "\n".join(clauses)
    for clause in clauses:
        for at in range(len(clause) - 2):
            word = clause[at : at + 3]
            whole = word[0] not in _NEVER_FIRST and both.count(word) == both.count(word[1:]) > 1
            if word[-1] in "员师匠" and whole and not any(len(role) > 1 and role in word for role in ROLES):
                yield word
            if clause[at + 1] in "员师匠" and clause[at] not in _NEVER_FIRST and both.count(clause[at : at + 2]) > 1:
                yield clause[at : at + 2]


def _names(clauses: Sequence[str], roles: set[str]) -> Iterator[str]:
    ends = tuple(roles)
    for clause in clauses:
        for at in range(len(clause) - 1):
            called = clause[:at].endswith(ends) or clause[:at].endswith(tuple(_PEOPLE_END))
            titled, head = clause[at] in _TITLES, clause[at : at + 2]
            if clause[max(0, at - 1) : at + 1] in WORD_TAILS:
                continue
            if (at and clause[at - 1] in _TITLES) or head in ORDINARY_NAMES or (titled and head[-1] in _THINGS):
                continue
            if not (called or titled or clause[at] in STRONG_SURNAMES):
                continue
            name = _whole(clause[at:], clauses)
            if len(name) > _LONGEST - 1 and name[:2] not in COMPOUND_SURNAMES:
                continue
            first = any(each.startswith(name) for each in clauses)
            if not name or clause[at + len(name) : at + len(name) + 1] in _PEOPLE_END:
                continue
            if not _IN_NO_NAME & set(name) and (first or titled or clause[at] in STRONG_SURNAMES):
                yield name


def _whole(rest: str, clauses: Sequence[str]) -> str:
    """Return the name at the beginning of a clause's rest, "" if there is none that returns in the texts."""
    known = COMMENTARY | PLAIN
    if rest[0] in _NEVER_FIRST or rest[:2] in known or rest[:3] in known:
        return ""
    for length in range(2, min(_LONGEST, len(rest)) + 1):
        word = rest[:length]
        behind = _followers(word, clauses)
        if sum(behind.values()) < 2:
            return ""
        whole = len(behind) >= _MOST_FOLLOWERS or behind[""] or min(behind.values()) == 1
        if whole:
            return "" if word[-1] in _NEVER_LAST or word in known else word
    return ""


def _followers(word: str, clauses: Sequence[str]) -> Counter[str]:
    """Return how often each character stands behind a word; "" for the end of a clause."""
    counted: Counter[str] = Counter()
    for clause in clauses:
        at = clause.find(word)
        while at >= 0:
            counted[clause[at + len(word) : at + len(word) + 1]] += 1
            at = clause.find(word, at + 1)
    return counted


def _persons(
    every: Sequence[str], names: set[str], source: Sequence[str], text: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Return which names are one person: they stand side by side, or the one is said to be the other.

    No two proper names become one, and 王家女儿 is not 王家: of a relative only what stands before the name counts.
    """
    linked: dict[str, set[str]] = {name: {name} for name in every}
    told = "\n".join((*source, *text))
    for one in every:
        for other in every:
            if one == other or len((linked[one] | linked[other]) & names) > 1:
                continue
            joins = _JOIN if one in names and other in RELATIVES else ("", *_JOIN)
            if any(re.search(f"{re.escape(one + join + other)}(?!.{{0,3}}的)", told) for join in joins):
                group = linked[one] | linked[other]
                for name in group:
                    linked[name] = group
    return {name: frozenset(group) for name, group in linked.items()}
