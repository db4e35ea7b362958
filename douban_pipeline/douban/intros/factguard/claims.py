"""What no introduction may contain.

Claims that a fact sheet cannot back (ratings, awards, platforms, reception), advertising and meta-talk;
addresses, contacts, markup, emoji and hidden characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable

from douban_pipeline.douban.intros.factguard.plain_text import folded
from douban_pipeline.matching.text import HAN, narrow

_CLAIMS = re.compile(
    # Ratings.
    r"豆瓣|imdb|烂番茄|metacritic|评分|高分|打分|满分"
    r"|[\d一二三四五六七八九十.]+分(?:好评|高分|佳作|神作)|\d\.\d\s?分(?!钟)|口碑|好评|差评|热评|top\s?\d+|排行榜"
    r"|榜首|榜单|排名[前第]"
    # Awards.
    r"|金马(?:奖|影|最佳)|金像奖|金鸡奖|百花奖|华表奖|飞天奖|金鹰奖|白玉兰奖|金钟奖|金棕榈|金狮奖|金熊奖?|银熊奖?"
    r"|金球奖|奥斯卡|艾美奖|格莱美|电影学院奖|青龙(?:电影)?奖|百想艺术|大钟奖|蓝丝带奖|凯撒奖|托尼奖|戛纳|圣丹斯"
    r"|电[影视]节|影展|载誉|殊荣|摘得|(?<!精)神作(?![祟法怪用恶])|(?<!电)影史|获奖|得奖|大奖|奖项|颁奖|提名|入围|荣获|斩获"
    r"|最佳(?:影片|剧集|电影|电视剧|导演|男|女|编剧|剧本|摄影|动画|外语|新人|配乐|纪录)|(?<!电)[影视]帝"
    r"|(?<![电摄观剪身背阴倒人])影后|(?<![电重忽藐注])视后|小金人"
    # Platforms and broadcasters.
    r"|爱奇艺|腾讯视频|优酷|芒果tv|哔哩哔哩|(?<![a-z])b站|搜狐视频|咪咕|西瓜视频|乐视|土豆网|抖音|快手|netflix|网飞"
    r"|奈飞|hbo|disney\s?\+|迪士尼\+|hulu|亚马逊(?:影业|视频|出品|平台)|prime video|apple\s?tv|央视|cctv|卫视"
    r"|中央电视台|nhk|bbc(?![a-z])|(?<![a-z])tv[bn](?![a-z])|jtbc|腾讯|淘票票|时光网|红果短剧|视频平台|流媒体|网络平台|独播|独家|上线|首播|热播"
    r"|全网|院线|定档|登陆(?=.{0,6}(?:影院|院线|荧屏|银幕))"
    # Money and audience.
    r"|票房|亿元|卖座|播放量|点击量|点播量|收视|热搜|热议|刷屏|爆款|现象级|出圈|圈粉|人气|国民级|风靡"
    r"|(?:深?受|赢得|收获|引发|备受)(?:了|到)?(?:广大|众多|全国|全球|无数|海内外)?(?:观众|影迷|剧迷|网友|粉丝|业界|媒体)"
    r"|(?:观众|影迷|网友|粉丝|业界|媒体)(?:们)?(?:的)?(?:喜爱|追捧|热捧|欢迎|认可|好评|一致|盛赞)"
    # Claims about the origin of the story.
    r"|改编自|(?:小说|漫画|游戏|作品|戏剧)改编|原著|真实事件|真人真事|同名(?:小说|漫画|游戏|动画|话剧|电影)"
)
_ADVERTS = re.compile(
    r"点击|在线(?:观看|播放|看)|观看(?:完整|全集|地址|链接|方式)|高清|超清|蓝光(?:版|画质|碟|原盘)|1080p|720p"
    r"|(?<![a-z0-9])4k|下载|免费|订阅|扫码|追剧|关注(?:我们|本站|公众号|微信|频道|账号|官方)"
    r"|(?:敬请|点击|欢迎|持续|记得)关注|敬请期待|(?<![a-z])vip|会员(?:观看|专享|抢先)|点播|网盘|种子(?:下载|链接)"
    r"|磁力链|迅雷|资源(?:站|网|下载)|收藏本|播放(?:源|地址|链接)|立即(?:观看|播放|体验)|快来(?:观看|看看|一起)"
    r"|赶快(?:观看|来看)|千万不要错过"
)
_META = re.compile(
    r"作为(?:一个|一名|一款)?(?:ai|人工智能|语言模型|助手)|(?:ai|语言模型)(?:助手|生成|撰写)"
    r"|无法(?:提供|获取|生成|核实)|(?<![一-鿿])(?:非常|很)?抱歉"
    r"|根据(?:您|提供|所给|给出|已知|上述|以上|现有|公开)[^,。]{0,8}(?:资料|事实|信息|内容)|事实(?:表|清单|单)"
    r"|资料(?:显示|有限|不足|未)|(?:信息|剧情|情节|简介)(?:暂未|尚未|未予|有限|不详)|未(?:提供|提及|公布)|暂无"
    r"|(?:年份|导演|演员|主演|片长|集数)(?:不详|未知)|如下:|(?<![一-鿿])以下(?:是|为)|本站|小编|笔者|简介:|json"
    r"|fact sheet|prompt|提示词|系统提示|忽略(?:以上|上述|之前)|字数"
)


def _hits(pattern: re.Pattern[str], text: str, sheet: Container[str]) -> list[str]:
    return list(dict.fromkeys(match[0] for match in pattern.finditer(text) if match[0] not in sheet))


def claims(text: str, sheet_text: str) -> list[str]:
    """Return claims of rating, award, platform, money or audience that ``sheet_text`` lacks; both texts `folded`."""
    return _hits(_CLAIMS, text, sheet_text)


def adverts(text: str, sheet_text: str) -> list[str]:
    """Return advertising words and references elsewhere that ``sheet_text`` lacks; both texts `folded`."""
    return _hits(_ADVERTS, text, sheet_text)


def talk_of_itself(text: str, sheet_text: str) -> list[str]:
    """Return phrases about the text itself, its sources or its author instead of the work; both texts `folded`."""
    return _hits(_META, text, sheet_text)


_TLD = (
    "com|cn|net|org|info|tv|cc|top|xyz|vip|me|io|club|site|online|live|app|co|us|hk|tw|jp|kr|uk|ru|fun|shop|pro|ltd"
    "|ink|wang|link|mobi|biz|asia|la|ws|fm|ai|gg|tk|ml|icu|cyou|one|store|space|work|video|movie|film|website|cloud"
)
_ADDRESSES = (
    re.compile(r"[a-z][a-z0-9+.-]{1,15}://[^\s，。、；！？)）]*"),
    re.compile(r"(?<![a-z0-9])www\s?[.。点]\s?[a-z0-9][^\s，。、；！？)）]*"),
    re.compile(
        rf"(?<![a-z0-9])[a-z0-9](?:[a-z0-9-]|[.](?=[a-z0-9])){{0,80}}(?:\s?[.。点]\s?|\s?[(\[][.点][)\]]\s?|\sdot\s)(?:{_TLD})(?![a-z0-9])(?:/[^\s，。、；！？]*)?"
    ),
    # With any ending: names like Mr.Bean of the fact sheet are removed before.
    re.compile(r"(?<![a-z0-9.])[a-z0-9][a-z0-9-]{1,60}\.[a-z]{2,18}(?![a-z0-9.])(?:/[^\s，。、；！？]*)?"),
    re.compile(rf"[a-z0-9{HAN}-]{{1,40}}\.(?:中国|公司|网络|网址|在线|商城|集团)(?![{HAN}])"),
    re.compile(r"(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)"),
)
_CONTACTS = (
    re.compile(r"[\w.+-]{0,64}\s?@\s?[\w.-]{0,64}"),
    re.compile(r"(?<![\d.])\+?\d(?:[\s()-]?\d){6,}(?!\d)"),
    re.compile(r"(?<![a-z])(?:qq|vx|wx|wechat|whatsapp|telegram)(?![a-z])\s?[:号群]?\s?[\w-]*"),
    re.compile(
        "微信(?:号|群|公众号)?|扣扣|[加进入]群|群号|公众号|二维码|扫一扫|扫码|联系电话|客服|热线|手机号|联系方式"
        "|电报群|企鹅号|小程序|(?<![a-z])v信(?!号)|扣群"
    ),
)
_MARKUP = (
    re.compile(r"</?[a-zA-Z!][^<>]{0,80}>?|[<>＜＞﹤﹥]"),
    re.compile(r"&(?:[a-zA-Z]{2,10}|#\d{1,7}|#x[0-9a-fA-F]{1,6});"),
    re.compile(r"!?\[[^\]]{0,80}\]\([^)]{0,200}\)"),
    re.compile(r"(?m)^\s{0,3}(?:#{1,6}(?=\s)|[-+*•](?=\s)|\d{1,2}[.)、](?=\s?\D)|>|-{3,}|={3,})"),
    re.compile(r"\*+|`+|~~|__|[{}\\|]|#|\[|\]|\\[nrt]"),
)
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a-\u23ff\u25a0-\u25ff\u20e3\ufe0f\u2190-\u21ff\u3030\u303d\xa9\xae\u2122\u24b6-\u24ff\u3297\u3299]+"
)
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def _matches(patterns: Iterable[re.Pattern[str]], text: str) -> list[str]:
    return [match[0].strip() for pattern in patterns for match in pattern.finditer(text) if match[0].strip()]


def addresses(text: str) -> list[str]:
    """Return URLs, domains and IP addresses, also in full width and with 点 or 。 as the dot."""
    return _matches(_ADDRESSES, narrow(text).casefold())


def contacts(text: str) -> list[str]:
    """Return mail addresses, handles, numbers with the length of phone numbers, and words for contacts."""
    return _matches(_CONTACTS, folded(text))


def markup(text: str) -> list[str]:
    """Return HTML tags, entities, and characters of Markdown and JSON syntax."""
    return _matches(_MARKUP, text)


def emoji(text: str) -> list[str]:
    """Return runs of emoji, arrows and dingbats."""
    return _EMOJI.findall(text)


def hidden(text: str) -> list[str]:
    """Return the invisible code points, each once, except line ends."""
    found = (
        char for char in text if char != "\n" and char != "\ufe0f" and unicodedata.category(char) in _HIDDEN_CATEGORIES
    )
    return list(dict.fromkeys(f"U+{ord(char):04X}" for char in (*found, *re.findall("\ufffd", text))))
