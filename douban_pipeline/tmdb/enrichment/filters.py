"""What a question says of years, countries, genres and quality, and TMDB's filters of discovery for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from douban_pipeline.tmdb.enrichment.route import Years
from douban_pipeline.tmdb.types import EntityType

_BETWEEN = re.compile(r"(?i)(?<!\d)((?:19|20)\d\d)\s*年?\s*(?:到|至|[-–—~～]|and|to)\s*((?:19|20)\d\d)(?!\d)")
_DECADE = re.compile(r"(?i)(?<!\d)(?:the )?((?:19|20)?[0-9]0)\s*(?:年代|'?s\b)|([八九])十年代")
_SINCE = re.compile(r"(?i)((?:19|20)\d\d)\s*年?(?:以后|之后|以来|后|起)|(?:after|since)\s+((?:19|20)\d\d)")
_UNTIL = re.compile(r"(?i)((?:19|20)\d\d)\s*年?(?:以前|之前|前)|(?:before|until)\s+((?:19|20)\d\d)")
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
    (re.compile(r"(?i)西部|\bwesterns?\b"), 37, 37),
    (re.compile(r"(?i)音乐|歌舞|musical|\bmusic\b"), 10402, None),
    (re.compile(r"(?i)儿童|\bkids\b|children"), 10751, 10762),
    (re.compile(r"(?i)真人秀|综艺|reality"), None, 10764),
    (re.compile(r"(?i)政治|politic"), None, 10768),
)
"""Words, with TMDB's genre ids for films and for series."""
_RATED = re.compile(r"(?i)高分|评分(?:最)?高|口碑|经典|best|top")


def has_genre(text: str) -> bool:
    """Return whether a text names a genre."""
    return any(words.search(text) for words, _, _ in _GENRES)


def years_in(text: str) -> Years | None:
    """Return the bounds that a text sets to years."""
    if match := _BETWEEN.search(text):
        first, last = sorted((int(match[1]), int(match[2])))
        return first, last
    if match := _DECADE.search(text):
        said = {"八": "80", "九": "90"}.get(match[2] or "", match[1] or "")
        first = int(said) if len(said) == 4 else (1900 if int(said) > 20 else 2000) + int(said)
        return first, first + 9
    since, until = _SINCE.search(text), _UNTIL.search(text)
    if since or until:
        return (int(since[1] or since[2]) if since else None, int(until[1] or until[2]) if until else None)
    return None


def filters_of(text: str, media: EntityType, year: int | None, years: Years | None) -> dict[str, str]:
    """Return TMDB's filters for a recommendation of films or series."""
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
    day = "primary_release_date" if media is EntityType.MOVIE else "first_air_date"
    for bound, value, end in (("gte", years and years[0], "01-01"), ("lte", years and years[1], "12-31")):
        if value:
            filters[f"{day}.{bound}"] = f"{value}-{end}"
    return filters
