"""Routes a question by rules: a named entity, a recommendation of films or series, or not a question for TMDB. Pure.

A model may replace either part: any object with the methods of `EntityExtractor` and `Router` can be used. A question
is outside text: it is searched by patterns and cut to a length, and never becomes part of a query language.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from douban_pipeline.tmdb.types import EntityType

LONGEST_QUESTION = 500
MOST_ENTITIES = 3
_LONGEST_NAME = 80


class Intent(StrEnum):
    """How a question is handled."""

    ENTITY = "entity"
    """It names a title or a person, which is searched."""
    MOVIES = "recommend_movies"
    SERIES = "recommend_tv"
    NONE = "none"
    """Not a question for TMDB."""


class Role(StrEnum):
    """Which of a person's work is requested."""

    DIRECTOR = "director"
    ACTOR = "actor"
    WRITER = "writer"


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a question.

    Attributes:
        selected_agent: The responsible agent: ``tmdb``, or ``none``.
        query_intent: How it is handled.
        extracted_entities: Names in it, in order.
        titles: Those of them that are marked as titles (《喜宴》).
        role_hint: Whose work is requested.
        year: The year in the question.
        media: Whether it is about films or series, if stated.
        filters: For recommendations: TMDB's filters of discovery.
    """

    selected_agent: str
    query_intent: Intent
    extracted_entities: Sequence[str] = ()
    titles: frozenset[str] = frozenset()
    role_hint: Role | None = None
    year: int | None = None
    media: EntityType | None = None
    filters: Mapping[str, str] = field(default_factory=dict)

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """What two questions have in common whose requests to TMDB are the same."""
        filters = tuple(sorted(self.filters.items()))
        names = (tuple(self.extracted_entities), self.titles)
        return (self.query_intent, *names, self.role_hint, self.year, self.media, filters)


class EntityExtractor(Protocol):
    """Finds the names of films, series and people in a question."""

    def extract(self, query_text: str) -> list[str]:
        """Return the names, in order."""
        ...


class Router(Protocol):
    """Determines the route of a question."""

    def route(self, message: str, kb_prefix: str = "") -> Route:
        """Return the route; ``kb_prefix`` is the knowledge base of the question (``movie``, ``tv``, …)."""
        ...


_MARKED = re.compile(r"《([^《》]{1,80})》|〈([^〈〉]{1,80})〉")
_QUOTED = re.compile(r"[“「『\"]([^“”「」『』\"]{1,80})[”」』\"]")
_YEAR = re.compile(r"(?<!\d)(19[0-9]{2}|20[0-9]{2})(?!\d)")
_ASKING = r"^(?:请问|问一下|想知道|介绍一下|说说|讲讲)?"
_CALLED = r"(?P<name>[^，。？！?!]{1,40}?)(?:这部\S{1,3})?"
_MADE = r"(?:导演|执导|拍|主演|出演|演|写|编剧)"
_ENGLISH = r"(?P<name>.{1,80}?)\s*[?.!]*$"
_PERSON_OR_TITLE = tuple(
    re.compile(form)
    for form in (
        # 谁导演了X
        rf"^(?:请问|问一下|想知道)?(?:是)?谁{_MADE}(?:的|了|过)(?P<name>[^，。？！?!]{{1,40}})",
        # X是谁导演的, X由谁主演
        rf"{_ASKING}{_CALLED}(?:是|由)谁{_MADE}",
        # X的导演是谁, X的主演有哪些, X导演过哪些电影, X的代表作
        rf"{_ASKING}{_CALLED}的?(?:导演|执导|主演|出演|演员|编剧|演职员|卡司|代表作|作品|简介|剧情|评分|上映)"
        r"(?:是谁|有谁|有哪|都有|了哪|过哪|过什么|了什么|的电影|的电视剧|的片|是什么|多少|时间|$)",
        # X演过什么
        rf"{_ASKING}{_CALLED}(?:演|拍|写)(?:过|了)(?:哪|什么)",
        r"^(?:介绍一下|介绍|说说|讲讲)(?P<name>[^，。？！?!的]{1,40})",
        rf"(?i)^who\s+(?:directed|wrote|starred in|acted in|played in|made)\s+{_ENGLISH}",
        r"(?i)^who(?:'s| is| was| are)?\s+(?:the\s+)?(?:director|writer|cast|stars?|actors?)\s+(?:of|in)\s+" + _ENGLISH,
        rf"(?i)(?:films?|movies?|series|shows?)\s+(?:directed|written|made)?\s*(?:by|with|starring)\s+{_ENGLISH}",
    )
)
_TOGETHER = re.compile(
    r"^(?P<one>[^，。？！和与跟]{1,20})[和与跟](?P<other>[^，。？！]{1,20}?)(?:一起|共同)?(?:合作|同台|共同|搭档)"
)
_ROLES = (
    (Role.DIRECTOR, re.compile(r"(?i)导演|执导|拍(?:过|了|的)|direct")),
    (Role.WRITER, re.compile(r"(?i)编剧|写(?:过|了|的)|writ|screenplay")),
    (Role.ACTOR, re.compile(r"(?i)主演|出演|演员|演(?:过|了|的)|扮演|卡司|合作|actor|actress|cast|starr|acted|play")),
)
_RECOMMEND = re.compile(
    r"(?i)推荐|安利|有(?:什么|哪些|没有)[^？?]{0,8}(?:好看|值得|经典|高分)|好看的|值得(?:一)?看|片荒|剧荒|片单|看什么|看点什么|"
    r"recommend|suggest|what (?:to|should i) watch"
)
_SERIES = re.compile(
    r"(?i)电视剧|连续剧|剧集|网剧|[美韩日英国泰港台]剧|国产剧|番剧|剧荒|追剧|[\u4e00-\u9fff]剧(?!情|本|院|组|照|片)|"
    r"series|\btv\b|\bshows?\b"
)
_FILMS = re.compile(r"(?i)电影|影片|片子|大片|片荒|片单|[\u4e00-\u9fff]片|movie|film")
_COUNTRIES = (
    ("CN", re.compile(r"国产|中国|大陆|内地|华语|中文")),
    ("US", re.compile(r"(?i)美剧|美国|好莱坞|american|hollywood")),
    ("KR", re.compile(r"(?i)韩剧|韩国|korean")),
    ("JP", re.compile(r"(?i)日剧|日本|番剧|japanese")),
    ("GB", re.compile(r"(?i)英剧|英国|british")),
    ("HK", re.compile(r"港剧|港片|香港")),
    ("TW", re.compile(r"台剧|台湾")),
    ("TH", re.compile(r"泰剧|泰国")),
    ("FR", re.compile(r"(?i)法国|french")),
    ("IN", re.compile(r"(?i)印度|indian")),
)
_GENRES: Sequence[tuple[re.Pattern[str], int | None, int | None]] = (
    (re.compile(r"(?i)动作|action"), 28, 10759),
    (re.compile(r"(?i)冒险|adventure"), 12, 10759),
    (re.compile(r"(?i)动画|动漫|番剧|animat"), 16, 16),
    (re.compile(r"(?i)喜剧|搞笑|comed"), 35, 35),
    (re.compile(r"(?i)犯罪|刑侦|警匪|crime"), 80, 80),
    (re.compile(r"(?i)纪录|documentar"), 99, 99),
    (re.compile(r"(?i)剧情片|文艺|drama"), 18, 18),
    (re.compile(r"(?i)家庭|family"), 10751, 10751),
    (re.compile(r"(?i)奇幻|魔幻|fantasy"), 14, 10765),
    (re.compile(r"(?i)历史|history"), 36, None),
    (re.compile(r"(?i)恐怖|horror"), 27, None),
    (re.compile(r"(?i)悬疑|推理|mystery"), 9648, 9648),
    (re.compile(r"(?i)爱情|浪漫|恋爱|romance|romantic"), 10749, None),
    (re.compile(r"(?i)科幻|sci-?fi|science fiction"), 878, 10765),
    (re.compile(r"(?i)惊悚|thriller"), 53, None),
    (re.compile(r"(?i)战争|war\b"), 10752, 10768),
)
"""Words, with TMDB's genre ids for films and for series."""
_RATED = re.compile(r"(?i)高分|评分(?:最)?高|口碑|经典|best|top")
_BLANK = re.compile(r"\s+")


class RuleExtractor:
    """Finds names by marks (《》, quotes) first; without marks, by common forms of questions."""

    def extract(self, query_text: str) -> list[str]:
        """Return the names, in order, each once."""
        text = _plain(query_text)
        names = _marked(text) or [match[1].strip() for match in _QUOTED.finditer(text)]
        if not names and not _RECOMMEND.search(text):
            names = [_name(each) for each in _unmarked(text)]
        return list(dict.fromkeys(name for name in names if name))[:MOST_ENTITIES]


class RuleRouter:
    """Routes by words; the names come from an extractor.

    Args:
        extractor: Finds names; rule-based by default.
    """

    def __init__(self, extractor: EntityExtractor | None = None) -> None:
        self._extractor = extractor or RuleExtractor()

    def route(self, message: str, kb_prefix: str = "") -> Route:
        """Return the route of a question; see `Router`."""
        text = _plain(message)
        prefix = kb_prefix.strip().strip(":/").casefold()
        if not text or (prefix and prefix not in _PREFIXES):
            return Route("none", Intent.NONE)
        bare = _MARKED.sub(" ", text)
        media = _media(bare)
        role = next((role for role, words in _ROLES if words.search(bare)), None)
        year = next((int(match[1]) for match in _YEAR.finditer(bare)), None)
        names = self._extractor.extract(text)
        if names:
            titles = frozenset(_marked(text))
            return Route("tmdb", Intent.ENTITY, names, titles, role, year, media)
        if not _RECOMMEND.search(text):
            return Route("none", Intent.NONE)
        media = media or _PREFIXES.get(prefix)
        if media is None:
            return Route("none", Intent.NONE)
        intent = Intent.SERIES if media is EntityType.TV else Intent.MOVIES
        return Route("tmdb", intent, (), frozenset(), role, year, media, _filters(bare, media, year))


_PREFIXES: Mapping[str, EntityType | None] = {
    "movie": EntityType.MOVIE,
    "movies": EntityType.MOVIE,
    "film": EntityType.MOVIE,
    "tv": EntityType.TV,
    "series": EntityType.TV,
    "tmdb": None,
}
"""Supported knowledge bases and their media; questions for others are not handled."""


def _plain(text: str) -> str:
    return _BLANK.sub(" ", "".join(char if char.isprintable() else " " for char in text[:LONGEST_QUESTION])).strip()


def _marked(text: str) -> list[str]:
    return [(match[1] or match[2]).strip() for match in _MARKED.finditer(text)]


def _unmarked(text: str) -> list[str]:
    together = _TOGETHER.search(text)
    if together:
        return [together["one"], together["other"]]
    for form in _PERSON_OR_TITLE:
        match = form.search(text)
        if match:
            return [match["name"]]
    return []


_BEFORE = re.compile(r"^(?:请问|电影|影片|电视剧|剧集|导演|演员|编剧|(?:19|20)\d\d\s*年?的?)\s*")
_AFTER = re.compile(r"(?:这部电影|这部剧|这部片|这部|的)$")


def _name(text: str) -> str:
    name = _BLANK.sub(" ", text).strip(" 　,，。.？?！!：:《》〈〉")[:_LONGEST_NAME]
    while (shorter := _AFTER.sub("", _BEFORE.sub("", name))) and shorter != name:
        name = shorter
    return name.strip()


def _media(text: str) -> EntityType | None:
    series, films = bool(_SERIES.search(text)), bool(_FILMS.search(text))
    if series == films:
        return None
    return EntityType.TV if series else EntityType.MOVIE


def _filters(text: str, media: EntityType, year: int | None) -> dict[str, str]:
    filters = {"sort_by": "popularity.desc"}
    if _RATED.search(text):
        filters = {"sort_by": "vote_average.desc", "vote_average.gte": "7", "vote_count.gte": "200"}
    if country := next((code for code, words in _COUNTRIES if words.search(text)), ""):
        filters["with_origin_country"] = country
    genres = [films if media is EntityType.MOVIE else series for words, films, series in _GENRES if words.search(text)]
    if wanted := [str(genre) for genre in dict.fromkeys(genres) if genre is not None]:
        filters["with_genres"] = ",".join(wanted)
    if year is not None:
        filters["primary_release_year" if media is EntityType.MOVIE else "first_air_date_year"] = str(year)
    return filters
