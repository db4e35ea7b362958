"""Routes a question by rules: what it names, a recommendation of films or series, or not a question for TMDB. Pure.

A model may replace either part: any object with the methods of `EntityExtractor` and `Router` can be used. A question
is outside text: it is searched by patterns and cut to a length, and never becomes part of a query language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from douban_pipeline.matching import parse_title
from douban_pipeline.matching.numerals import numeral
from douban_pipeline.matching.text import simplify
from douban_pipeline.tmdb.enrichment.chinese_phrases import is_chinese, read_chinese
from douban_pipeline.tmdb.enrichment.english_phrases import read_english
from douban_pipeline.tmdb.enrichment.filters import filters_of, has_genre, years_in
from douban_pipeline.tmdb.enrichment.route import (
    LONGEST_QUESTION,
    Asked,
    EntityExtractor,
    Intent,
    Phrased,
    Role,
    Route,
)
from douban_pipeline.tmdb.enrichment.two_sentences import read_two
from douban_pipeline.tmdb.types import EntityType

MOST_ENTITIES = 3
_LONGEST_BARE = 30
_MOST_WORDS = 8
"""Longest Chinese and English text that is taken for a name although nothing in it asks: letters and words."""

_MARKED = re.compile(r"《([^《》]{1,80})》|〈([^〈〉]{1,80})〉")
_QUOTED = re.compile(r"[“「『\"]([^“”「」『』\"]{1,80})[”」』\"]")
_YEAR = re.compile(r"(?<!\d)(19[0-9]{2}|20[0-9]{2})(?!\d)")
_ROLES = (
    (Role.DIRECTOR, re.compile(r"(?i)导演|导演|执导|执导|拍(?:过|了|的)|direct")),
    (Role.WRITER, re.compile(r"(?i)编剧|编剧|写(?:过|了|的)|writ|wrote|screenplay")),
    (
        Role.ACTOR,
        re.compile(r"(?i)主演|出演|演员|演员|演(?:过|了|的)|扮演|卡司|合作|actor|actress|cast|starr|acted|play"),
    ),
)
_RECOMMEND = re.compile(
    r"(?i)推荐|安利|有(?:什么|哪些|没有|啥)[^？?]{0,12}(?:好看|值得|经典|高分|的(?:片|电影|剧|"
    r"动漫|动画|纪录片))|"
    r"好看的|最好的|最佳|必看|值得(?:一)?看的|片荒|剧荒|片单|书荒|看(?:点|些|部)?(?:什么|啥|哪部)|来"
    r"(?:点|一?部|几部)|来(?:点|部|几部)|求(?:一?部|几部|个|一个)?|"
    r"找(?:一?部|几部|点|些)|想看(?:点|部|一?些|个|几部)?|排行|榜|"
    r"\brecommend|\bsuggest|what (?:to|should (?:i|we)|can (?:i|we)) watch|\b(?:best|top|good|great|"
    r"must-watch|must-see|underrated|classic|popular)\b|"
    r"\bworth (?:watching|seeing)\b|looking for|in the mood for|\bsome\b|any good|\bwant to (?:watch|see) an?\b"
)
_SERIES = re.compile(
    r"(?i)电视剧|连续剧|剧集|网剧|[美韩日英国泰港台]剧|国产剧|番剧|剧荒|追剧|sitcom|情景喜剧|"
    r"(?<![喜悲歌戏话])(?<=[\u4e00-\u9fff])剧(?!情|本|院|组|照|片)|"
    r"series|\bdramas\b|\b(?:korean|chinese|japanese|turkish|thai|k-|tv|period|crime)\s?dramas?\b|\btv\b|\bshows?\b"
)
_FILMS = re.compile(
    r"(?i)电影|影片|片子|大片|片荒|片单|[\u4e00-\u9fff]片|movie|film|\b(?:westerns|thrillers|documentaries|"
    r"comedies|musicals|thriller|biopics)\b"
)
_BLANK = re.compile(r"\s+")
_OFF_TOPIC = re.compile(
    r"(?i)天气|气温|下雨|股票|股价|股市|大盘|基金|汇率|房价|房贷|翻译|怎么做|做法|菜谱|食谱|几点|星期几|几号|"
    r"路线|怎么走|怎么去|多少钱|快递|外卖|代码|编程|程序|写(?:一)?(?:首|篇|封|个|段|份)|等于|加上|乘以|算一下|"
    r"高铁|火车|航班|地铁|朝代|平方|方程|根号|总统|首相|主席|首都|人口|面积|公式|单词|作文|邮件|简历|机票|"
    r"酒店|医院|感冒|头疼|发烧|减肥|彩票|手机|电脑|你.{0,4}心情|换工作|找工作|该不该|谢谢你|火锅|餐厅|饭店推荐|吉他|英语|wifi|wi-fi|密码|充值|会员|客服|退款|登录|注册|你是谁|"
    r"你叫什么|讲个笑话|笑话|讲个故事|唱歌|闹钟|提醒我|世界杯|球赛|比分|\bweather\b|\btemperature\b|"
    r"\bstocks?\b|\bprice\b|\btranslate\b|\brecipe\b|how (?:do|can|many (?:people|days|cups))\b|"
    r"should i (?:cook|eat|wear|buy)\b|\bcode\b|"
    r"\bpython\b|\bjava(?:script)?\b|what time|\bemail\b|\bdirections?\b to|\bcalculate\b|\bsquare root\b|"
    r"capital of|\bpresident\b|\bprime minister\b|\bworld cup\b|how tall\b|\bpoem\b|\bjoke\b|\balarm\b|"
    r"remind me|\bfix\b|\bdefine\b|"
    r"\bmeaning of\b|\bpopulation\b|\bbitcoin\b|\d\s*[-+*/x×]\s*\d|\d\s*%"
)
"""Words of questions that are about anything but films."""
_WONDERING = re.compile(
    r"什么|怎么|为什么|哪(?!部)|多少|多久|是不是|能不能|会不会|"
    r"(?i:^(?:why|how|where|when|which|do|does|did|can|is|are|should)) [a-z]+\b(?! [A-Z])|"
    r"^[Ww]h(?:o|at) [a-z]+(?: [a-z]+){3,}\W*$"
)
"""Words of a question of which nothing known is asked."""
_GREETING = re.compile(
    r"(?i)^(?:你好|您好|嗨|哈喽|在吗|在么|早上好|晚上好|早安|晚安|谢谢(?:你|您|啦|了)?|多谢|再见|拜拜|好的|嗯|ok|"
    r"okay|hi|hello|hey|thanks?(?: you)?|bye|"
    r"good (?:morning|evening|night)|how are you|who are you|what can you do|你能做什么|你会什么|test|"
    r"测试)[\s!！。.？?~～啊呀]*$"
)
_FILLER = re.compile(
    r"(?i)推荐|安利|好看|值得|经典|高分|评分|分|口碑|冷门|热门|最新|最近|近期|新|老|必看|有趣|搞笑|感人|烧脑|"
    r"治愈|下饭|催泪|轻松|适合|一个人|孩子|小孩|儿童|全家|家人|情侣|周末|睡前|晚上|今晚|今天|过年|假期|国产|"
    r"中国|大陆|内地|华语|中文|美国|好莱坞|欧美|欧洲|韩国|日本|英国|香港|台湾|泰国|法国|印度|德国|西班牙|"
    r"意大利|俄罗斯|韩|日|美|英|港|台|泰|动作|冒险|动画|动漫|喜剧|犯罪|刑侦|警匪|纪录|剧情|文艺|家庭|奇幻|"
    r"魔幻|历史|黑色|公路|灾难|不错|精彩|奥斯卡|获奖|得奖|影片|甜宠|仙侠|近[一二两三几]年|[八九]十|恐怖|惊悚|悬疑|推理|爱情|浪漫|恋爱|科幻|战争|古装|武侠|谍战|谍|宫斗|青春|校园|励志|灾难|丧尸|"
    r"僵尸|鬼|音乐|歌舞|西部|黑帮|传记|体育|运动|律政|医疗|职场|电视剧|连续剧|剧集|电影|影片|片子|大片|片|剧|"
    r"番|集|部|类型|题材|排行|榜|单|前十|年代|年|的|了|吗|呢|吧|啊|有|没|哪|些|什么|啥|一|几|点|看|我|给|求|"
    r"来|想|找|可以|能|不|最|佳|好|多|少|高|于|以上|以后|以前|之后|之前|到|和|或|者|在|上映|上|下|里|中|是|都|"
    r"很|比较|以|情景|sitcom|\d|[\s,，。.？?！!、~～-]|豆瓣|二战|抗战"
)
"""Words of a recommendation that name nothing."""
_DESCRIBES = re.compile(
    r"^讲|适合|把|让人|一起看|带.*看|吓人|看哭|哪部|最|朋友|那种|一点|十几|上映|完结|不超过|左右|以内|不要太|比较|"
    r"心情|老人|爱看|家里"
)
"""Words of a description of what somebody wants to see."""
_E_NAMED = re.compile(r"(?:\b[A-Z][\w'’.-]+(?:\s+(?:of|the|and|de|von|van|da)\b)?\s*){2,}")
_E_COMMON = re.compile(
    r"(?ia)\b(?:netflix|feel good|hbo|disney|oscars?|academy|award|winning|marvel|hollywood|bollywood|british|"
    r"american|korean|japanese|chinese|french|indian|"
    r"hong|kong|taiwan(?:ese)?|thai|italian|spanish|german|european|sci-?fi|tv|can|what|which|recommend|"
    r"suggest|give|show|any|best|top|good|i|"
    r"tvb|please|some|movies?|films?|series|shows?|k-dramas?|dramas?|thrillers?|westerns?|documentar(?:y|"
    r"ies)|comed(?:y|ies)|horrors?|romances?|miniseries|sitcoms?|musicals?|cartoons?|"
    r"since|after|before|what|are|the|is|there|whats|nordic|\w+(?:[vdtnlrg]ian|ish|ese)|scary|funny|sad|"
    r"short|long|new|old|recent|latest|classic|underrated|overrated|highly|rated|popular|romantic|feel-good|"
    r"slow|dark|indie|road|heist|noir|disaster|superhero|zombie|gangster|spy|martial|arts|nature|about|worth|watching|seeing|"
    r"animated|"
    r"foreign|family|kids?|historical|psychological|action|adventure|crime|mystery|war|fantasy|animation|"
    r"anime|great|must-watch|must-see|christmas|halloween|christian|english)\b"
)


class RuleExtractor:
    """Finds names by marks (《》, quotes) first; without marks, by what remains of a question without what asks."""

    def extract(self, query_text: str) -> list[str]:
        """Return the names, in order, each once."""
        text = _plain(query_text)
        marked = _marked(text) or _quoted(text)
        simple = _simple(text)
        return _each_once(marked or [_as_written(name, simple, text) for name in _phrased(simple).names])


class RuleRouter:
    """Routes by words; the names come from an extractor.

    Args:
        extractor: Finds names; rule-based by default.
    """

    def __init__(self, extractor: EntityExtractor | None = None) -> None:
        self._extractor = extractor

    def route(self, message: str, kb_prefix: str = "") -> Route:
        """Return the route of a question; see `Router`."""
        text = _plain(message)
        prefix = kb_prefix.strip().strip(":/").casefold()
        if not text or (prefix and prefix not in _PREFIXES) or _GREETING.match(text):
            return Route("none", Intent.NONE)
        simple = _simple(text)
        marked = _marked(text) or _quoted(text)
        bare = _QUOTED.sub(" X ", _MARKED.sub(" X ", simple)) if marked else simple
        said = _phrased(bare)
        english = not is_chinese(said.around if said.asked else text)
        if marked and not (_OFF_TOPIC.search(bare) and not _marked(text)):
            named = self._extractor.extract(text) if self._extractor else marked
            asked = said.asked or Asked.ABOUT
            if len(named) > 1 and asked in (Asked.WORKS, Asked.ABOUT) and re.search(r"合作|同台|共同|together", bare):
                asked = Asked.TOGETHER
            return _entity(named, frozenset(_marked(text)), asked, bare, english)
        text, written = simple, text
        if _OFF_TOPIC.search(text) or (
            said.asked is None and not _media(text) and not _RECOMMEND.search(text) and _WONDERING.search(text)
        ):
            return Route("none", Intent.NONE)
        names = self._extractor.extract(text) if self._extractor else list(said.names)
        recommends = bool(_RECOMMEND.search(said.around if said.asked not in (None, Asked.ABOUT) else text))
        head, _, tail = names[0].rpartition("的") if names else ("", "", "")
        if recommends and head and not _FILLER.sub("", tail) and _FILLER.sub("", head):
            names[0] = head  # 沈腾的喜剧
        if names and (self._extractor or _is_named(text, said, recommends, english)):
            asked = said.asked or (Asked.WORKS if recommends else Asked.ABOUT)
            return _entity(
                [_as_written(name, simple, written) for name in names], frozenset(), asked, said.around, english
            )
        media = _media(text) or (_PREFIXES.get(prefix) if recommends else None)
        if media is None and recommends and has_genre(text):
            media = EntityType.MOVIE
        if media is None:
            return Route("none", Intent.NONE)
        intent = Intent.SERIES if media is EntityType.TV else Intent.MOVIES
        years = years_in(text)
        year = None if years else _year(text)
        filters = filters_of(text, media, year, years)
        return Route("tmdb", intent, (), frozenset(), None, year, media, filters, years=years, english=english)


_PREFIXES: Mapping[str, EntityType | None] = {
    "movie": EntityType.MOVIE,
    "movies": EntityType.MOVIE,
    "film": EntityType.MOVIE,
    "tv": EntityType.TV,
    "series": EntityType.TV,
    "tmdb": None,
}
"""Supported knowledge bases and their media; questions for others are not handled."""


_SEASON_OF = re.compile(r"(?i)season (\d{1,2}) of (.+)")
_HOW_MANY = re.compile(r"(?i) how many$")
_SEASON_BESIDE = re.compile(r"(?i)第\s*([0-9一二三四五六七八九十]{1,3})\s*[季部]|season (\d{1,2})\b")


def _plain(text: str) -> str:
    return _BLANK.sub(" ", "".join(char if char.isprintable() else " " for char in text[:LONGEST_QUESTION])).strip()


def _simple(text: str) -> str:
    """Return a text in simplified characters, each in the place of its own."""
    simple = simplify(text)
    return simple if len(simple) == len(text) else text


def _as_written(name: str, simple: str, written: str) -> str:
    """Return a name of a simplified text as it was written."""
    place = simple.find(name)
    return written[place : place + len(name)] if place >= 0 else name


def _marked(text: str) -> list[str]:
    return [(match[1] or match[2]).strip() for match in _MARKED.finditer(text)]


def _quoted(text: str) -> list[str]:
    return [match[1].strip() for match in _QUOTED.finditer(text)]


def _each_once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name))[:MOST_ENTITIES]


def _phrased(text: str) -> Phrased:
    chinese = is_chinese(text)
    if (two := read_two(text, _read, chinese=chinese)) is not None:
        return two
    return _read(text)


def _read(text: str) -> Phrased:
    said = read_english(text)
    if is_chinese(text) and said.asked is None:
        return read_chinese(text)
    return said


def _entity(names: Sequence[str], titles: frozenset[str], asked: Asked, around: str, english: bool) -> Route:
    role = next((role for role, words in _ROLES if words.search(around)), None)
    years = years_in(around)
    year = None if years else _year(around)
    if asked is Asked.WORKS and year is not None:
        years, year = (year, year), None
    media, season = _media(around), None
    if asked is Asked.EPISODES and len(names) == 1:
        name, season = _season(names[0], around)
        names, media = [name], media if season is None else EntityType.TV
    return Route("tmdb", Intent.ENTITY, _each_once(names), titles, role, year, media, {}, asked, years, english, season)


def _season(name: str, around: str) -> tuple[str, int | None]:
    """Return the name of a series without its season, and the season, which is in it or beside it."""
    if of := _SEASON_OF.fullmatch(name):
        return of[2], int(of[1])
    parsed = parse_title(_HOW_MANY.sub("", re.sub(r"(?<=..)(第[0-9一二三四五六七八九十]{1,3})部$", r"\1季", name)))
    if parsed.number_kind == "season" and parsed.name:
        return parsed.name, parsed.number
    beside = _SEASON_BESIDE.search(around)
    return name, numeral(beside[1] or beside[2]) if beside else None


def _is_named(text: str, said: Phrased, recommends: bool, english: bool) -> bool:
    """Return whether what remains of a question is a name."""
    name = said.names[0]
    media = _media(text)
    listed = said.asked in (None, Asked.ABOUT, Asked.WORKS, Asked.RATING)
    if listed and not english and media and not _FILLER.sub("", _E_COMMON.sub("", name)):
        return False
    if media and said.asked in (None, Asked.ABOUT, Asked.WORKS, Asked.TOGETHER) and _describes(name, english):
        return False
    if recommends:
        if said.asked is not None and said.asked is not Asked.WORKS:
            return True
        if english:
            return bool(_E_NAMED.search(_E_COMMON.sub(" ", name)))
        return len(_FILLER.sub("", _E_COMMON.sub("", name))) >= 2
    if said.asked is not None:
        return True
    return len(text) <= _LONGEST_BARE if not english else len(text.split()) <= _MOST_WORDS


def _describes(name: str, english: bool) -> bool:
    """Return whether what looks like a name says of what kind a title is to be."""
    if not english:
        return bool(_DESCRIBES.search(name))
    left = _E_COMMON.sub(" ", name).strip(" -–0123456789s'")
    return not left or bool(re.match(r"(?:an?|the|lots|no|strong|for|about|that|to|from|with)\b", left))


def _media(text: str) -> EntityType | None:
    series, films = bool(_SERIES.search(text)), bool(_FILMS.search(text))
    if series == films:
        return EntityType.TV if series and re.search(r"(?i)\btv\b", text) else None
    return EntityType.TV if series else EntityType.MOVIE


def _year(text: str) -> int | None:
    return next((int(match[1]) for match in _YEAR.finditer(text)), None)
