"""The words around the names of a Chinese question, in simplified characters: which of them ask, and for what. Pure.

A question is peeled: phrases that ask are taken off its beginning and its end until none is left, and what remains is
the name, whatever words are in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from douban_pipeline.tmdb.enrichment.route import Asked, Phrased, tidied

_KIND = (
    r"(?:[美韩日英国泰港台]剧|(?:喜剧|动作|爱情|恐怖|科幻|悬疑|战争|歌舞|犯罪|文艺|青春|武侠|古装|谍战)[片剧]|电影|影片|片子|大片|片|动画片|"
    r"纪录片|电视剧|连续剧|剧集|网剧|剧|动漫|动画|番剧|作品|movies?|films?|shows?)"
)
_KINDS_OF = (
    r"(?:恐怖|科幻|喜剧|动作|爱情|悬疑|惊悚|战争|犯罪|文艺|动画|纪录|黑白|历史|奇幻|灾难|武侠|歌舞|"
    r"音乐|西部|公路|黑色|家庭|传记)"
)
_COUNT = r"(?:[一几两二三四五六七八九十\d]+\s*(?:部|个|些|本|集)|一些|些|点)"
_WHICH = r"(?:哪些|哪几部|什么|哪部|啥|多少)"

_MOST = r"(?:里|中|当中)面?(?:评分|口碑|票房)?最(?:高|好|好看|火|经典)的(?:一?部)?(?:是哪部)?"

_FRONT = re.compile(
    r"^(?:请问一下|请问|麻烦问下|问一下|问下|想问问?|我?想知道|我?想(?:要)?找|我?想(?:了解|看看)(?:一下)?|(?:你好|您好|"
    r"嗨)[\s,，!！]*(?=请问|我|能|可|帮|想|麻烦|推荐)|话说|(?:那个|那么|那)(?=[\s,，])|"
    r"(?:能不能|能否|可以|麻烦|请|可不可以)?(?:给我|帮我|跟我|和我|为我)?(?:介绍|说说|讲讲|聊聊|"
    r"谈谈|科普|推荐|安利|"
    r"告诉我|查查|查一下|查|搜一下|搜索|搜|找找|找一下|找)(?:一下|下|一些|给我|我)?|帮我|给我|"
    r"(?:你|您)?(?:知道|知不知道|听说过|看过|看没看过|了解|觉得|认为)|(?:我)?(?:好)?想(?:要)?看|我要看|关于|有关|"
    r"除了|还有|有没有|有没|有什么|有哪些|有啥|都有哪些|求)"
    r"[\s,，、:：]*"
)
"""What begins a question and is no name."""
_FRONT_WEAK = re.compile(
    rf"^(?:(?:(?:19|20)\d\d\s*年?版?的?)?(?:这|那)部|{_COUNT}的?|(?:电影|影片|电视剧|剧集|连续剧|动画片)(?=.)"
    r"|(?:19|20)\d\d\s*年?(?:版|上映|首播|拍|出品)?的|(?:和|跟|与|像)(?=.{1,30}(?:类似|相似|差不多|一样|同类|那样)))\s*"
)
"""What may stand before a name, in a question that asks something."""

_FACETS: Sequence[tuple[Asked, str]] = (
    (
        Asked.LIKE,
        rf"(?:这样|那样|这种|那种|差不多|一样|类似|相似|相近|同类型?)?(?:的|好看的)*(?:{_COUNT})?"
        rf"(?:类似|相似|差不多|同类型?|同款)(?:的)?{_KIND}?(?:推荐)?",
    ),
    (
        Asked.TOGETHER,
        rf"(?:曾经|都|曾|有没有|一共|还|也|是不是)*(?:(?:出|主|参)?演过同一[部个]|合作|同台|搭档|联手|对戏|合演|共事|(?:一起|共同|一块儿?)(?:主演|出演|合作|"
        rf"演|拍|参演))"
        rf"(?:过|了)?(?:的)?(?:{_WHICH}|几次|多少次|几部|戏)?(?:{_KIND})?(?:有{_WHICH}|没有?)?",
    ),
    (
        Asked.RATING,
        r"(?:在)?(?:豆瓣|TMDB|IMDb)?(?:上)?(?:的)?(?:评分|得分|打分|分数|口碑|评价)(?:是|有|高不高|高|"
        r"怎么样|如何|怎样|是多少|多少|几分|有多高|多高)*",
    ),
    (
        Asked.RATING,
        r"(?:在)?(?:豆瓣|TMDB|IMDb)?(?:上)?(?:得了|打了|有|是)?(?:几分|多少分)|(?:好|好不好|值得|值不值得|"
        r"值得一)(?:看)(?:吗|不|么|嘛|吧)?|好不好|(?:到底|究竟)?(?:怎么样|怎样|咋样|如何|好不好)",
    ),
    (
        Asked.YEAR,
        r"(?:在(?:国内|内地|大陆|中国|美国|香港))?(?:是|在)?(?:哪一年|哪年|几几年|什么时候|啥时候|何时|几时|几月|多会儿)"
        r"(?:的|上映|首播|播出|开播|拍|出|发行|播|上线|上(?=的?$))*(?:的|了)?(?:片子?|电影|剧)?|(?:的)?(?:上映|首播|播出|发行|开播)(?:的)?(?:时间|日期|年份|日子)?"
        r"(?:是)?|年份",
    ),
    (
        Asked.RUNTIME,
        r"(?:的)?(?:片长|时长|长度)(?:是)?(?:多长时间|多长|多久|多少分钟|几分钟|几个?小时)?"
        r"|(?:一共|总共|全片|要看|得|要|需要|大概)*(?:有)?(?:多长(?:时间)?|多久|多少分钟|几分钟|多少个?小时|几个?小时)"
        r"(?:(?:能|才能)?看完)?",
    ),
    (
        Asked.EPISODES,
        r"(?:一共|总共|现在|目前|已经)?(?:有|出了|拍了|更新到|出到|播了)?(?:几部几集|几集|多少集|几季|多少季|第几季|"
        r"集数|季数|(?<=有)几部|(?<=了)几部)(?:多少集|多少季|几集)?",
    ),
    (
        Asked.PLOT,
        r"(?:是)?(?:关于|讲)(?:些)?什么(?:的)?(?:故事)?(?:的)?|(?:主要|到底|是|大概|在|都)*(?:讲|说|演|写|描述|"
        r"讲述)(?:的|了|述|的是)*(?:个|一个)?(?:是)?(?:什么|啥|怎样)(?:样)?(?:的)?(?:故事|内容|事|剧情)?(?:的)?|(?:的)?"
        r"(?:剧情|简介|故事|情节|内容|大结局|结局|结尾|剧情简介|故事简介|故事梗概|梗概)(?:介绍|是)?(?:怎么?样的?)?",
    ),
    (
        Asked.GENRES,
        rf"(?:是(?:不是)?|属于|算是?)(?:一?部)?{_KINDS_OF}(?:电影|片子?|剧)|(?:属于|算是?){_KINDS_OF}|是.{{1,5}}片?还是.{{1,5}}片?|(?:属于|算是?|是不是)(?:一部)?[^是]{{2,4}}片|(?:是|属于|算)(?:什么|哪种|哪类|啥)(?:类型|题材|片子|片|类别)(?:的)?"
        rf"(?:{_KIND})?|(?:的)?(?:类型|题材)",
    ),
    (
        Asked.COUNTRY,
        r"是[美英法德韩日泰港台国]产?[片剧]还是[美英法德韩日泰港台国]产?[片剧]|是(?:不是)?(?:中国|国产|大陆|香港|台湾|美国|英国|法国|德国|韩国|日本|泰国|印度|意大利|西班牙|俄罗斯|[美英法德韩日泰])"
        r"(?:的)?(?:片|电影|剧)|(?:是)?(?:哪个|哪|什么)(?:国家|国|地方|地区)(?:的)?(?:拍|出|制作|出品)?(?:的)?(?:片子?|电影|剧)?|"
        r"(?:的)?(?:制片|出品)?(?:国家|地区)",
    ),
    (
        Asked.LANGUAGE,
        r"(?:的)?(?:(?:原声|对白)?是(?:说|讲)?|里?面?(?:说|讲)的?(?:是)?)(?:[汉国粤英法德日韩俄泰]|西班牙|意大利|葡萄牙|阿拉伯)[语话](?:的)?|"
        r"(?:里?(?:说|讲)的)?(?:是|用)?(?:说|讲)?(?:什么|哪种)(?:语言|语|话)(?:的)?(?:电影|片子?|剧)?|(?:的)?(?:语言|原声)",
    ),
    (
        Asked.DIRECTOR,
        r"(?:的)?(?:谁(?:导演|执导|导|拍)的?|(?:是|由)(?:谁|哪位|哪个)?(?:大?导演|执导|导|拍)(?:拍|导)?(?:的)?|是(?:谁)(?:拍|导)的?|"
        r"(?<=.)(?:导演|执导者))",
    ),
    (
        Asked.WRITER,
        r"(?:是)?(?:根据|改编自)(?:谁|哪位|什么|哪[部本个])(?:作家)?(?:的)?(?:小说|书|作品|故事|漫画)?(?:改编)?(?:的)?|"
        r"(?:的)?(?:(?:是|由)(?:谁|哪位)(?:编剧|写|创作)(?:的)?|(?:编剧|作者|原著作者|原著|原作))",
    ),
    (
        Asked.CAST,
        r"(?:里|中)?(?:面)?(?:的)?(?:(?:是|由|有|都有|都是|都)?(?:谁|哪些人|哪位|哪些演员|什么人)(?:主演|"
        r"出演|参演|演)(?:的|了|过)?|(?:都)?有(?:哪些|什么)(?:演员|主演|明星|人)|(?:都)?有谁|(?:主演|演员|"
        r"主要演员|卡司|阵容|男主角?|女主角?|男一号?|女一号?|主角|演员阵容|演员表|演职员表?|(?:主演|演员|演职员)(?:名单|列表)|出演者|"
        r"男女主角?))",
    ),
    (
        Asked.WORKS,
        rf"(?:曾|都|还|又|自己|以前)*(?:主演|出演|参演|自编自导|自导自演|导演|执导|导|拍|拍摄|演|编剧|写)(?:过|了|的)+"
        rf"(?:{_WHICH})?(?:{_KIND})?(?:(?:有|是){_WHICH})?(?:{_KIND})?(?:{_MOST})?",
    ),
    (
        Asked.WORKS,
        rf"(?:的)?(?:最新|最近|早期|最好)的?{_KIND}|(?:的)?(?:都?有{_WHICH})?(?:的)?(?:代表作品|代表作|作品|成名作|处女作|最新作品|电影作品)|(?:的){_KIND}{_MOST}|(?:的)(?:所有|全部|最新|最好|经典|早期|好看|"
        rf"高分|新)*(?:的)?{_KIND}|(?:的)?(?:早期|后期|晚期)的?(?:[\u4e00-\u9fff]{{2}})?{_KIND}|的[\u4e00-\u9fff]{{2}}片(?:都?有{_WHICH})?|参演作品|演艺经历|电影列表",
    ),
    (
        Asked.ABOUT,
        r"(?:这[个位]人)?(?:的)?(?:个人)?(?:资料|信息|生平)|(?:是谁|是什么人|是何许人也?|何许人也?|是干什么的|是做什么的)",
    ),
)
"""Phrases at the end of a question, by the fact that they ask for; the first that fits counts."""
_SPAN = re.compile(
    r"^(?:从|自|在)?(?:(?:19|20)\d\d\s*年?(?:到|至|[-–—~～])\s*(?:19|20)\d\d\s*年?(?:之间|间|期间)?|(?:19|"
    r"20)\d\d\s*年?(?:以后|之后|以来|以前|之前|后|前|起)"
    r"|(?:[八九]十|(?:19|20)?\d0)年代|(?:19|20)\d\d\s*年)(?:的|里|拍的|上映的)?|(?:从|自|在|于)?(?:(?:19|"
    r"20)\d\d\s*年?(?:到|至|[-–—~～])\s*(?:19|20)\d\d\s*年?(?:之间|间|期间)?"
    r"|(?:19|20)\d\d\s*年?(?:以后|之后|以来|以前|之前|后|前|起)|(?:[八九]十|(?:19|20)?\d0)年代|(?:19|"
    r"20)\d\d\s*年)(?:的|拍的|上映的)?$"
)
"""Years before or behind the name of somebody whose works are asked for."""
_NEEDS_ASKING = (Asked.DIRECTOR, Asked.WRITER, Asked.CAST, Asked.GENRES, Asked.COUNTRY, Asked.LANGUAGE, Asked.PLOT)
"""Facts whose words may end a title (动作演员): they ask after a particle or before what follows."""
_END = (
    r"(?:分别|都|主要|到底|究竟|在)*(?:是|有)?(?:谁|哪位|哪几[位个]|哪些人?|什么|多少|哪个|哪几个|谁啊|怎么样|如何|啥|呀|"
    r"几个)?(?:来着|的)?"
)
_TAILS = tuple((asked, re.compile(rf"(?P<facet>{form})(?P<end>{_END})$", re.IGNORECASE)) for asked, form in _FACETS)
_PARTICLE = re.compile(
    r"(?:[\s?？!！。.,，~～…]+|吗|呢|啊|呀|嘛|啦|(?<![什怎那多这])么|(?:能|可以)?(?:给我)?介绍(?:一?下)|吧|哦|了吗|来着|谢谢|请问|求推荐|"
    r"推荐一下|推荐|介绍一下|介绍|有吗|可以推荐|(?<=.)这部(?:电影|剧|片子?|电视剧|"
    r"影片)|(?<=.)这部(?:电影|剧)|"
    r"(?<=.)那部(?:电影|剧|片子?)|(?<=.)这[个位](?:导演|演员|编剧|人)(?:的(?:资料|信息))?|(?:给我|帮我|可以)?(?:来|推荐|介绍|找|列)(?:几部|一些|点|几个|一部|一下)|"
    r"有没有推荐)$"
)
_WHO = (
    # 谁导演了X, 谁在X里演了
    (
        Asked.DIRECTOR,
        re.compile(r"^(?:是)?(?:谁|哪位导演|哪个导演)(?:导演|执导|拍|导)(?:的是|了|过|的)(?P<name>.{1,60})$"),
    ),
    (Asked.WRITER, re.compile(r"^(?:是)?谁(?:编剧|写)(?:了|过|的)(?P<name>.{1,60}?)(?:的(?:剧本|原著|故事))?$")),
    (
        Asked.CAST,
        re.compile(
            r"^(?:是)?(?:谁|哪些人|哪些演员|有谁|都有谁)(?:主演|出演|参演|演)(?:了|过|的是|的)(?P<name>.{1,60})$"
        ),
    ),
    (
        Asked.CAST,
        re.compile(r"^(?P<name>.{1,40}?)(?:里|中)面?(?:.{1,8}演的?(?:是)?谁|谁演(?:的|了).{1,12})$"),
    ),
    *(
        (fact, re.compile(rf"^谁是(?P<name>.{{1,60}}?)的{words}$"))
        for fact, words in ((Asked.DIRECTOR, "导演"), (Asked.WRITER, "编剧"), (Asked.CAST, "(?:主演|[男女]主角?)"))
    ),
    (
        Asked.CAST,
        re.compile(r"^(?:谁|哪些人|哪些演员|有谁)在(?P<name>.{1,60}?)(?:里|中)(?:面)?(?:演|出演|主演|饰演).*$"),
    ),
    (
        Asked.CAST,
        re.compile(
            r"^(?P<name>.{1,40}?)(?:里|中)面?的?[^里中]{1,8}(?:是|由)?(?:谁|哪个演员|哪位)(?:演|饰演|扮演|来演)的?$"
        ),
    ),
    (
        Asked.LIKE,
        re.compile(
            rf"^(?:和|跟|与|像|类似于?|类似|同)(?P<name>.{{1,60}}?)(?:一样|类似|相似|差不多|这样|那样|这种|"
            rf"那种|同类型?|风格|感觉)*(?:(?<=样)[^的]{{1,4}}(?=的))?的?(?:好看的|经典的)?{_COUNT}?(?:类似的?)?{_KIND}(?:还?有{_WHICH})?$"
        ),
    ),
    (
        Asked.LIKE,
        re.compile(
            rf"^(?:喜欢|看完|刚看完|爱看)了?(?P<name>.{{1,40}}?)(?:的话)?[，,]?(?:还|可以|应该|接下来|该)*(?:能|可以)?"
            rf"(?:再)?(?:看(?:点|些)?(?:什么|啥|哪些)|"
            rf"(?:剧荒了?|片荒了?)?[，, ]*有(?:啥|什么)(?=类似))(?:类似的?)?(?:{_KIND})?(?:好)?$"
        ),
    ),
)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_SPLIT = re.compile(r"\s*(?:和|与|跟|以及|、|&|＆|\+|\band\b|\bwith\b)\s*")


def is_chinese(text: str) -> bool:
    """Return whether a question is in Chinese."""
    return bool(_CHINESE.search(text))


def read_chinese(text: str) -> Phrased:
    """Return what a Chinese question without marked names says."""
    name, asked = text.strip(), None
    while (shorter := _PARTICLE.sub("", name)) != name and shorter:
        name = shorter
    name = _peeled(_FRONT, name)
    for fact, form in _WHO:
        if match := form.match(name):
            return _phrased(text, match["name"], fact)
    ended = False
    while not ended:
        ended = True
        for fact, form in _TAILS:
            match = form.search(name)
            if match is None or not match[0] or _is_name(fact, match, name):
                continue
            asked = asked or fact
            name, ended = name[: match.start()], False
            while (shorter := _PARTICLE.sub("", name)) != name and shorter:
                name = shorter
            break
    if asked is not None or name != text.strip():
        loose = r"(?:的|这部|这个)+$" if asked in (Asked.WORKS, Asked.TOGETHER, Asked.LIKE) else r"(?:这部|这个)$"
        name = re.sub(rf"(?<=.){loose}", "", name)
        name = _peeled(_FRONT_WEAK, _peeled(_FRONT, name))
        name = re.sub(r"(?<=..)(?:系列|[三四]部曲)$", "", name)
        if asked is not Asked.LIKE:
            name = re.sub(
                r"(?<=..)(?:(?:19|20)\d\d\s*年?版|(?:电视)?剧版|电影版|电视剧|电影|剧集|连续剧|动漫|动画片?)$", "", name
            )
        if asked in (Asked.WORKS, Asked.TOGETHER, Asked.ABOUT):
            name = re.sub(r"^(?:女演员|男演员|演员|导演|明星|编剧|歌手)(?=.{2})", "", name)
        if asked in (Asked.WORKS, Asked.TOGETHER):
            name = re.sub(r"除了.{1,12}?(?:以外|之外|还|$)", "", _peeled(_SPAN, name)).strip()
            name = re.sub(r"的$", "", name)
    return _phrased(text, name, asked)


def _is_name(asked: Asked, match: re.Match[str], name: str) -> bool:
    """Return whether what looks like a question is a part of the name."""
    if asked not in _NEEDS_ASKING:
        return not match.start() and asked is not Asked.TOGETHER and len(name) <= 4
    facet = match["facet"]
    asks = (
        facet.startswith(("的", "是", "由", "里", "里", "讲", "说", "说", "主要"))
        or match["end"]
        or "谁" in facet
        or "谁" in facet
    )
    return not asks and match.start() < 3 and not name[: match.start()].endswith(" ")


def _peeled(form: re.Pattern[str], text: str) -> str:
    while (shorter := form.sub("", text)) != text:
        text = shorter
    return text


def _phrased(text: str, name: str, asked: Asked | None) -> Phrased:
    around = text.replace(name, " ", 1) if name else text
    names: tuple[str, ...] = (name,) if name else ()
    if asked in (Asked.TOGETHER, Asked.WORKS) and 2 <= len(parts := _SPLIT.split(name)) <= 3 and all(parts):
        names, asked = tuple(parts), Asked.TOGETHER
    elif asked is Asked.TOGETHER and len(parts := name.split()) == 2:
        names = tuple(parts)
    elif asked is Asked.TOGETHER:
        asked = Asked.WORKS
    return Phrased(tuple(filter(None, map(tidied, names))), asked, around)
