"""Converts words for regions, languages and genres (Douban's, the CMS's, common English ones) to codes.

Pure tables and functions over the standard library. This module handles only *words*; ``matching`` decides what a
difference between two videos means. Two rules: an unknown word never causes a conflict, and a value written to the site
is one of the site's own words, because ``vod_area`` and ``vod_lang`` are filtered by exact equality.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from douban_pipeline.cms.vocabulary_words import (
    ANY,
    GENERIC_LANGUAGES,
    GENRES,
    GREATER_CHINA,
    GROUP_WORDS,
    LANGUAGES,
    NARROW,
    REGION_GROUPS,
    REGIONS,
    SIMPLIFIED,
    SUCCESSORS,
)

_SEPARATORS = re.compile(r"[,/、|;&+\n\r\t]|(?<=\s)-(?=\s)")
_TOKENS = re.compile(r"[a-z0-9à-ɏ][a-z0-9à-ɏ.'’\-]*|[^\s\x00-\x7fà-ɏ]+")

_LONGEST_NAME = 5  # tokens: United States of America


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(SIMPLIFIED).casefold().strip()


def _key(folded: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "", bare)


class _Lexicon:
    """Words and their codes. An entry of a table is a code, then words; ``_`` is a space."""

    def __init__(self, *tables: str, suffixes: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> None:
        self._known: dict[str, tuple[str, ...]] = {}
        self._suffixes = suffixes
        for entry in "".join(tables).split(";"):
            head, _, words = " ".join(entry.split()).partition(" ")
            codes = tuple(head.split("+"))
            for word in [*codes, *words.split()] if len(codes) == 1 else words.split():
                if word and word not in without:
                    self._known.setdefault(_key(_fold(word.replace("_", " "))), codes)
        self._longest = max(map(len, self._known))
        # Cached: sites and Douban use the same few hundred words repeatedly.
        self._word = lru_cache(maxsize=4096)(self._read_word)

    def read(self, words: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the codes of all words in order, and the unknown pieces."""
        codes: dict[str, None] = {}
        unread: list[str] = []
        for word in words:
            found, missed = self._word(word)
            codes.update(dict.fromkeys(found))
            unread += missed
        return tuple(codes), tuple(unread)

    def _read_word(self, word: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        codes: list[str] = []
        unread: list[str] = []
        folded = _fold(word)
        whole = self._lookup(folded)
        pieces = [folded] if whole else _SEPARATORS.split(folded)
        for piece in pieces:
            if piece.strip():
                found, missed = self._piece(piece.strip())
                codes += found
                unread += missed
        return tuple(codes), tuple(unread)

    def _lookup(self, folded: str) -> tuple[str, ...]:
        key = _key(folded)
        for suffix in ("", *self._suffixes):
            if key.endswith(suffix) and (found := self._known.get(key.removesuffix(suffix))):
                return found
        return ()

    def _piece(self, folded: str) -> tuple[list[str], list[str]]:
        if whole := self._lookup(folded):
            return list(whole), []
        codes: list[str] = []
        unread: list[str] = []
        tokens = _TOKENS.findall(folded)
        while tokens:
            for taken in range(min(len(tokens), _LONGEST_NAME), 0, -1):
                found = self._lookup(" ".join(tokens[:taken])) or (taken == 1 and self._glued(tokens[0]))
                if found:
                    codes += found
                    break
            else:
                unread.append(tokens[0])
            del tokens[:taken]
        return codes, unread

    def _glued(self, token: str) -> tuple[str, ...]:
        """Return the codes of words without a separator (美国英国); empty unless every character is covered."""
        rest, codes = _key(token), list[str]()
        while rest:
            for length in range(min(len(rest), self._longest), 1, -1):  # one-character words are too ambiguous here
                if found := self._known.get(rest[:length]):
                    codes += found
                    rest = rest[length:]
                    break
            else:
                return ()
        return tuple(codes)


_REGION_LEXICON = _Lexicon(
    GROUP_WORDS,
    REGIONS,
    suffixes=("地区", "特别行政区", "省", "电视剧", "电影", "动漫", "动画", "综艺", "剧", "片"),
    without=("NA",),  # N/A is more frequent than Namibia's code
)
LANGUAGE_LEXICON = _Lexicon(LANGUAGES, suffixes=("版", "配音", "对白", "中字"))
"""Language words as codes: ``cmn``, ``yue``, ``en`` …; ``zh`` is unspecified Chinese, ``zxx`` no speech. Words that are
not languages (a month such as 四月, a number of subtitles) yield nothing."""

_GENRE_LEXICON = _Lexicon(GENRES, suffixes=("片", "剧", "电影", "电视剧", "类", "番", "题材"))


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of origin.

    Attributes:
        codes: Region codes, ISO 3166 letters plus ``SU``, ``CS`` and ``YU`` for former states
            (both Germanies are ``DE``).
        wildcards: Group words (a key of :data:`REGION_GROUPS`, or ``海外``) and :data:`ANY`.
    """

    codes: frozenset[str] = frozenset()
    wildcards: frozenset[str] = frozenset()


def regions_of(words: Iterable[str]) -> Regions:
    """Return the regions of words, each of which may contain several (``美国,英国``, ``美国 / 英国``, ``Hong Kong``).

    An unknown word becomes the wildcard :data:`ANY`, so that it can never cause a conflict.
    """
    read, unread = _REGION_LEXICON.read(words)
    wild = {code for code in read if code in REGION_GROUPS or code in ("海外", ANY)}
    return Regions(frozenset(read) - wild, frozenset(wild | ({ANY} if unread else set())))


def compatible(a: Regions, b: Regions) -> bool | None:
    """Return whether two origins agree: True, False, or None if unknown.

    They agree if they share a region (a third of all films are co-productions), where a former state matches any of
    its successors, or if a narrow group word (港台, 日韩, 华语, 英美, 北美) of one side covers a region of the other.
    Wide groups (欧美, 海外, …) are too vague to count as agreement, and no group word ever causes a conflict: a
    conflict requires two known, fully parsed, disjoint sets.
    """
    if _with_successors(a.codes, SUCCESSORS) & _with_successors(b.codes, SUCCESSORS):
        return True
    if _covers(a.wildcards, b.codes) or _covers(b.wildcards, a.codes):
        return True
    if not a.codes or not b.codes or a.wildcards or b.wildcards:
        return None
    return False


def _covers(wildcards: frozenset[str], codes: frozenset[str]) -> bool:
    return any(REGION_GROUPS[name] & codes for name in wildcards & NARROW)


def _with_successors(codes: frozenset[str], table: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return codes.union(*(table.get(code, frozenset()) for code in codes))


def genres_of(words: Iterable[str]) -> frozenset[str]:
    """Return genre words in Douban's form (动作片 → 动作, 动漫 → 动画).

    Category names (国产剧, 综艺), moods and other sites' tags are not genres and yield nothing.
    """
    return frozenset(_GENRE_LEXICON.read(words)[0])


def _words_of(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in re.split("[,，]", text) if word.strip())


DEFAULT_AREAS = _words_of("大陆,香港,台湾,美国,韩国,日本,泰国,新加坡,马来西亚,印度,英国,法国,加拿大,西班牙,俄罗斯,其它")
"""The area words shipped with maccms 10."""

DEFAULT_LANGUAGES = _words_of("国语,英语,粤语,闽南语,韩语,日语,法语,德语,其它")
"""The language words shipped with maccms 10."""

AREA_WIDTH = 20
"""Maximum length of ``vod_area`` in characters."""

LANGUAGE_WIDTH = 10
"""Maximum length of ``vod_lang`` in characters."""


@dataclass(frozen=True, slots=True)
class SiteVocabulary:
    """The area and language words of one category's filter bar: the only useful ones for a video."""

    areas: tuple[str, ...] = DEFAULT_AREAS
    languages: tuple[str, ...] = DEFAULT_LANGUAGES

    @classmethod
    def by_type(cls, rows: Iterable[tuple[int, int, str]]) -> dict[int, SiteVocabulary]:
        """Return the words of every category, by ``type_id``.

        An empty list, broken JSON or a missing category falls back to the parent, then to the default words.

        Args:
            rows: ``type_id``, ``type_pid`` and ``type_extend`` of every category.
        """
        known = {type_id: (parent, _extend(extend)) for type_id, parent, extend in rows}

        def inherited(type_id: int, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
            seen: set[int] = set()
            while type_id in known and type_id not in seen:  # a cycle of parents falls back to the default
                seen.add(type_id)
                type_id, words = known[type_id][0], known[type_id][1][key]
                if words:
                    return words
            return default

        return {
            type_id: cls(inherited(type_id, "area", DEFAULT_AREAS), inherited(type_id, "lang", DEFAULT_LANGUAGES))
            for type_id in known
        }

    def area_for(self, douban_regions: Sequence[str]) -> str | None:
        """Return the site's word for the first region that has one, or None if the row should not be changed.

        For each region an exact word is preferred, then the narrowest group word that covers it (港台, 欧美). 其它 is
        never written: it would hide what is known, and visitors who filter by a country would not find the video.
        """
        by_code = _single(_REGION_LEXICON, [word for word in self.areas if len(word) <= AREA_WIDTH])
        for wanted in _codes(_REGION_LEXICON, douban_regions):
            if wanted in REGION_GROUPS or wanted in ("海外", ANY):
                continue
            groups = [(len(members), name) for name, members in REGION_GROUPS.items() if wanted in members]
            names = [wanted, *(name for _, name in sorted(groups))]
            names += [] if wanted in GREATER_CHINA else ["海外"]
            found = next((by_code[name] for name in names if name in by_code), None)
            if found is not None:
                return found
        return None

    def language_for(self, douban_languages: Sequence[str]) -> str | None:
        """Return the site's word for the first language, else 其它; None if it is unknown or there is no such word.

        A site with only 国语 uses it for unspecified Chinese; one with only 中文 uses it for every kind of Chinese.
        """
        wanted = _first(LANGUAGE_LEXICON, douban_languages)
        if wanted is None:
            return None
        words = [word for word in self.languages if len(word) <= LANGUAGE_WIDTH]
        by_code = _single(LANGUAGE_LEXICON, words)
        names = [wanted, *(["cmn"] if wanted == "zh" else [])]
        names += ["zh"] if wanted in GENERIC_LANGUAGES["zh"] else []
        return next((by_code[name] for name in names if name in by_code), _other(words))


def _first(lexicon: _Lexicon, words: Sequence[str]) -> str | None:
    """Return the code of the first word; None if that word is unknown, even if later ones are known."""
    for piece in _pieces(words):
        codes, unread = lexicon.read([piece])
        return codes[0] if codes and not unread else None
    return None


def _codes(lexicon: _Lexicon, words: Sequence[str]) -> Iterator[str]:
    """Yield the code of each known word, in order."""
    for piece in _pieces(words):
        codes, unread = lexicon.read([piece])
        if codes and not unread:
            yield codes[0]


def _pieces(words: Sequence[str]) -> Iterator[str]:
    return (piece for word in words for piece in _SEPARATORS.split(_fold(word)) if piece.strip())


def _single(lexicon: _Lexicon, words: Iterable[str]) -> dict[str, str]:
    """Return site words that mean exactly one code, by code; the first of several is used."""
    found: dict[str, str] = {}
    for word in words:
        codes, unread = lexicon.read([word])
        if len(codes) == 1 and not unread:
            found.setdefault(codes[0], word)
    return found


def _other(words: Iterable[str]) -> str | None:
    return next((word for word in words if _fold(word) in ("其它", "其他", "other", "others")), None)


def _extend(raw: str | None) -> dict[str, tuple[str, ...]]:
    """Return the filter words of one ``type_extend``; empty if the JSON is broken or has another structure."""
    data: object = None
    for text in (raw or "", html.unescape(raw or "")):  # some tools save it HTML-escaped
        try:
            data = json.loads(text)
        except ValueError:
            continue
        break
    fields = data if isinstance(data, dict) else {}
    lists = {key: fields.get(key) for key in ("area", "lang")}
    return {key: _words_of(value) if isinstance(value, str) else () for key, value in lists.items()}
