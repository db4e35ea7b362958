"""Reasons against a candidate, as machine codes and as sentences for reviewers.

Codes are stored and counted; sentences are displayed. The sentence of a finding contains the values (年份差 3 年); the
table here has the sentences without values.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping


class Code(enum.StrEnum):
    """Reason why a candidate or a video is not confirmed."""

    # The plan's hard rejects.
    TITLE_TOO_FAR = "TITLE_TOO_FAR"
    YEAR_GAP = "YEAR_GAP"
    KIND_CONFLICT = "KIND_CONFLICT"
    REGION_CONFLICT = "REGION_CONFLICT"
    DIRECTOR_CONFLICT = "DIRECTOR_CONFLICT"
    # Softer conflicts of one candidate.
    SEASON_CONFLICT = "SEASON_CONFLICT"
    SEASON_ONE_SIDED = "SEASON_ONE_SIDED"
    EDITION_CONFLICT = "EDITION_CONFLICT"
    MERGED_RECORD = "MERGED_RECORD"
    MEDIUM_CONFLICT = "MEDIUM_CONFLICT"
    YEAR_OFF = "YEAR_OFF"
    YEAR_OF_RELEASE = "YEAR_OF_RELEASE"
    YEAR_IN_TITLE = "YEAR_IN_TITLE"
    ACTORS_DISJOINT = "ACTORS_DISJOINT"
    LENGTH_CONFLICT = "LENGTH_CONFLICT"
    MARKS_DIFFER = "MARKS_DIFFER"
    ORIGINALS_DIFFER = "ORIGINALS_DIFFER"
    # Unmet conditions of the acceptance gate.
    SEASON_OF_FILM = "SEASON_OF_FILM"
    TITLE_NOT_EXACT = "TITLE_NOT_EXACT"
    ALIAS_UNBACKED = "ALIAS_UNBACKED"
    ALIAS_TAKEN = "ALIAS_TAKEN"
    PART_DIFFERS = "PART_DIFFERS"
    YEAR_UNCONFIRMED = "YEAR_UNCONFIRMED"
    SIBLING_NEARER = "SIBLING_NEARER"
    LONE_EPISODE = "LONE_EPISODE"
    TOO_FEW_FACTS = "TOO_FEW_FACTS"
    UNCORROBORATED = "UNCORROBORATED"
    RIVALS_UNSEEN = "RIVALS_UNSEEN"
    FAMILY_UNSEEN = "FAMILY_UNSEEN"
    INCOMPLETE = "INCOMPLETE"
    REVERTED_BEFORE = "REVERTED_BEFORE"
    LINKED_ELSEWHERE = "LINKED_ELSEWHERE"
    PERSON_CHOSE_OTHER = "PERSON_CHOSE_OTHER"
    STRATUM_BRAKED = "STRATUM_BRAKED"
    # The verdict as a whole.
    LEAD_TOO_SMALL = "LEAD_TOO_SMALL"
    TWIN_SUBJECTS = "TWIN_SUBJECTS"
    BELOW_CONFIRM = "BELOW_CONFIRM"
    BELOW_REVIEW = "BELOW_REVIEW"
    CONFLICT = "CONFLICT"
    NO_CANDIDATES = "NO_CANDIDATES"
    ALL_REJECTED = "ALL_REJECTED"
    SOURCE_DEGRADED = "SOURCE_DEGRADED"
    # Stored state of the video.
    ID_LOCKED = "ID_LOCKED"


HARD_REJECTS: frozenset[Code] = frozenset(
    {Code.TITLE_TOO_FAR, Code.YEAR_GAP, Code.KIND_CONFLICT, Code.REGION_CONFLICT, Code.DIRECTOR_CONFLICT}
)
"""Codes that reject a candidate."""

LABELS: Mapping[str, str] = {
    Code.TITLE_TOO_FAR: "标题冲突",
    Code.YEAR_GAP: "年份冲突",
    Code.REGION_CONFLICT: "地区冲突",
    Code.DIRECTOR_CONFLICT: "导演冲突",
    Code.KIND_CONFLICT: "类型冲突",
    Code.LEAD_TOO_SMALL: "多候选接近",
    Code.ID_LOCKED: "锁定阻止",
}
"""The plan's labels: why a near candidate was not linked, in one word. Sentences begin with them."""


def labels_of(codes: Iterable[str]) -> tuple[str, ...]:
    """Return the labels of the codes, in order; most codes have none."""
    return tuple(LABELS[code] for code in codes if code in LABELS)


_CODES_BY_LABEL = {label: code for code, label in LABELS.items()}


def code_of(word: str) -> str:
    """Return the code with the label ``word``; any other word unchanged."""
    return str(_CODES_BY_LABEL.get(word.strip(), word))


SENTENCES: Mapping[str, str] = {
    Code.TITLE_TOO_FAR: f"{LABELS[Code.TITLE_TOO_FAR]}：片名相差太远",
    Code.YEAR_GAP: f"{LABELS[Code.YEAR_GAP]}：年份相差过大",
    Code.KIND_CONFLICT: f"{LABELS[Code.KIND_CONFLICT]}：一方是电影，一方是剧集",
    Code.REGION_CONFLICT: f"{LABELS[Code.REGION_CONFLICT]}：地区无交集",
    Code.DIRECTOR_CONFLICT: f"{LABELS[Code.DIRECTOR_CONFLICT]}：导演无交集",
    Code.SEASON_CONFLICT: "季数不一致",
    Code.SEASON_ONE_SIDED: "只有一方标明季数或部数",
    Code.EDITION_CONFLICT: "版本不一致",
    Code.MERGED_RECORD: "本地像是多季或多部的合集，豆瓣分为多个条目",
    Code.MEDIUM_CONFLICT: "一方是动画，另一方不是",
    Code.YEAR_OFF: "年份略有出入",
    Code.YEAR_OF_RELEASE: "年份只与某次上映相符",
    Code.YEAR_IN_TITLE: "片名里的年份与年份字段不符",
    Code.ACTORS_DISJOINT: "主演无交集",
    Code.LENGTH_CONFLICT: "片长或集数相差过大",
    Code.MARKS_DIFFER: "片名仅标点不同，且另有同名条目",
    Code.ORIGINALS_DIFFER: "原名不一致",
    Code.SEASON_OF_FILM: "片名标明第几季，豆瓣条目却是单部作品",
    Code.TITLE_NOT_EXACT: "片名不够一致",
    Code.ALIAS_UNBACKED: "仅别名相符，佐证不足",
    Code.PART_DIFFERS: "双方片名各标明不同的篇章",
    Code.ALIAS_TAKEN: "片名是此条目的别名，却是另一条目的正名",
    Code.YEAR_UNCONFIRMED: "年份未知或有出入，其他佐证不足",
    Code.SIBLING_NEARER: "同系列另一部的年份同样相符或更相符，可能漏了季数或副标题",
    Code.LONE_EPISODE: "豆瓣条目像是单集：片名写明第几集，或没有集数、片长如单集，可能是特别篇或 OVA",
    Code.TOO_FEW_FACTS: "片名之外相符的事实太少",
    Code.UNCORROBORATED: "片名过短、有同名作品或人员不符，需要导演、主演佐证",
    Code.RIVALS_UNSEEN: "还有同名条目未查看",
    Code.FAMILY_UNSEEN: "同名条目太多，候选可能不全",
    Code.INCOMPLETE: "候选不完整（有查询失败）",
    Code.REVERTED_BEFORE: "此匹配曾被撤销，或在 CMS 后台被清空",
    Code.LINKED_ELSEWHERE: "该条目已关联到季数不同的另一部影片",
    Code.PERSON_CHOSE_OTHER: "审核员选定的是另一条目",
    Code.STRATUM_BRAKED: "这一类匹配的准确率低于目标，自动确认已暂停",
    Code.LEAD_TOO_SMALL: f"{LABELS[Code.LEAD_TOO_SMALL]}：与次优候选差距不足",
    Code.TWIN_SUBJECTS: "豆瓣有两个条目都相符，可能是同一作品",
    Code.BELOW_CONFIRM: "得分未达自动确认线",
    Code.BELOW_REVIEW: "最高得分低于审核线",
    Code.CONFLICT: "除冲突项外相近",
    Code.NO_CANDIDATES: "没有找到候选",
    Code.ALL_REJECTED: "候选全部被排除",
    Code.SOURCE_DEGRADED: "数据来源异常，暂不判断",
    Code.ID_LOCKED: f"{LABELS[Code.ID_LOCKED]}：豆瓣 ID 已锁定，与候选不同",
}
"""A sentence for every code."""
