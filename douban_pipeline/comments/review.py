"""Safety review of texts before they are published: words, links, rate, duplicates. Pure, except for word automata.

A word list may mask (as ``mac_filter_words`` of the CMS does), require review, or refuse. A model may review a comment
again after it is published, see `comments.model_review`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from douban_pipeline.comments.event_handlers.state import Findings
from douban_pipeline.comments.trust import CurrentLevel, TrustLevel
from douban_pipeline.comments.types import CommentStatus
from douban_pipeline.comments.word_forms import WordFinder, clean

GUESTS_AT_ONCE, GUESTS_WITHIN = 30, timedelta(minutes=10)
"""Comments of guests that a section shows within a time; what more they write in it waits for review.

Limits by address do not hold a flood from many addresses; users, who are limited each, are not counted here.
"""
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'，。、]+", re.IGNORECASE)
_STRING = r"'((?:[^'\\]|\\.)*)'"


@dataclass(frozen=True, slots=True)
class WordLists:
    """Word lists by consequence: masked with asterisks, or review required; and IP addresses that are refused."""

    masked: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()
    refused_ips: frozenset[str] = frozenset()

    def plus(self, masked: Sequence[str], reviewed: Sequence[str]) -> WordLists:
        """Return the lists with more words."""
        return replace(self, masked=(*self.masked, *masked), reviewed=(*self.reviewed, *reviewed))


@dataclass(frozen=True, slots=True)
class CommentDraft:
    """A text to be published, with what the review needs to know about it."""

    text: str
    author: str
    ip: str = ""
    trusted: bool = False
    """Whether the author is an operator or higher; such texts are not reviewed."""
    waits_anyway: bool = False
    """Whether the section requires review of every comment."""
    lately: int = 0
    """Number of comments that the author published within the last minute."""
    of_guests: int = 0
    """Where the author is a guest, the number of guests' comments in the section within `GUESTS_WITHIN`."""
    guest: bool = False
    """Whether nobody knows the author."""
    double: bool = False
    """Whether the author published the same text recently."""
    level: CurrentLevel | None = None
    """What a moderator set for the author or the address."""
    waits_as_new: int = 0
    """Number of first comments of newcomers that wait for review, where this is one of them; else 0."""
    known: bool = False
    """Whether the author has published enough that links do not make a comment wait."""


@dataclass(frozen=True)
class SafetyReview:
    """Reviews texts.

    Args:
        per_minute: Maximum number of comments of an author within a minute; more are refused; 0 for no limit.
        links: Number of links from which a text requires review; 0 for no limit.
    """

    words: WordLists = field(default_factory=WordLists)
    per_minute: int = 0
    links: int = 0
    guest_links: int = 0
    _finders: Mapping[str, WordFinder] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        finders = {"masked": WordFinder(self.words.masked), "reviewed": WordFinder(self.words.reviewed)}
        object.__setattr__(self, "_finders", finders)

    def has_links(self, text: str, *, guest: bool = False) -> bool:
        """Return whether a text has as many links that it requires review."""
        most = self.guest_links if guest else self.links
        return bool(most) and len(_LINK.findall(text)) >= most

    def judge(self, draft: CommentDraft) -> Findings:
        """Return the result of reviewing a text."""
        text = clean(draft.text)
        if not text:
            return Findings("", refusal="内容为空")
        if draft.trusted:
            return Findings(text)
        if draft.level is not None and draft.level.level is TrustLevel.BANNED:
            return Findings(text, refusal=draft.level.ban_refusal())
        if draft.ip and draft.ip in self.words.refused_ips:
            return Findings(text, refusal="来源地址在黑名单中")
        if draft.double:
            return Findings(text, refusal="重复的评论")
        if self.per_minute and draft.lately >= self.per_minute:
            return Findings(text, refusal="发布过于频繁")
        masked = _mask(text, self._finders["masked"].spans(text))
        reasons = [f"含词语“{text[start:end]}”" for start, end in self._finders["reviewed"].spans(text)]
        trusted = draft.level is not None and draft.level.level is TrustLevel.TRUSTED
        if self.has_links(text, guest=draft.guest) and not (draft.known or trusted):
            reasons.append(f"含 {len(_LINK.findall(text))} 个链接")
        if draft.waits_anyway:
            reasons.append("先审后发")
        if draft.level is not None and draft.level.level is TrustLevel.WATCHED:
            reasons.append("作者或来源地址受关注")
        if draft.waits_as_new and not trusted:
            reasons.append(f"新用户的前 {draft.waits_as_new} 条评论")
        if draft.of_guests >= GUESTS_AT_ONCE and not trusted:
            reasons.append(f"游客发言突增，{GUESTS_WITHIN.seconds // 60} 分钟内超过 {GUESTS_AT_ONCE} 条")
        status = CommentStatus.REVIEW if reasons else CommentStatus.NORMAL
        return Findings(masked, status, reasons=tuple(dict.fromkeys(reasons)), masked=masked != text)


def _mask(text: str, spans: Sequence[tuple[int, int]]) -> str:
    letters = list(text)
    for start, end in spans:
        letters[start:end] = "*" * (end - start)
    return "".join(letters)


def read_word_lists(folder: Path | None) -> WordLists:
    """Return the CMS's own lists from its PHP files ``maccms.php`` and, if there is one, ``blacks.php``.

    ``filter_words`` of the first are the words that ``mac_filter_words`` masks with asterisks; of the second,
    ``black_keyword_list`` requires review and ``black_ip_list`` refuses.

    Args:
        folder: The CMS's ``application/extra``; None for empty lists.

    Raises:
        OSError: A file cannot be read.
    """
    if folder is None:
        return WordLists()
    content = (folder / "maccms.php").read_text(encoding="utf-8", errors="replace")
    found = re.search(rf"'filter_words'\s*=>\s*{_STRING}", content)
    masked = _unescape(found.group(1)).split(",") if found else ()
    black = folder / "blacks.php"
    content = black.read_text(encoding="utf-8", errors="replace") if black.exists() else ""
    reviewed, ips = (_php_list(content, name) for name in ("black_keyword_list", "black_ip_list"))
    return WordLists(
        tuple(word.strip() for word in masked if word.strip()),
        tuple(word.strip() for word in reviewed if word.strip()),
        frozenset(ip.strip() for ip in ips if ip.strip()),
    )


def _php_list(content: str, name: str) -> list[str]:
    item = rf"\s*(?:\d+\s*=>\s*)?{_STRING}\s*,?"
    found = re.search(rf"'{name}'\s*=>\s*(?:array\s*\(|\[)((?:{item})*)", content)
    return [_unescape(given.group(1)) for given in re.finditer(item, found.group(1))] if found else []


def _unescape(text: str) -> str:
    return re.sub(r"\\(['\\])", r"\1", text)
