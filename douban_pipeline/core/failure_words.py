"""Failures of outside sources in Chinese, for the people who run a site.

Messages are stored as they were raised, in English: the back-off classifies them by their words, and they name what a
server said. Pages say the same in Chinese, and find what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from douban_pipeline.core.language import Language, reader_language

FAILURES: Mapping[str, str] = {
    # HTTP and the network
    "HTTP 401 unauthorised": "要求登录，或凭据已失效（HTTP 401）",
    "HTTP 403 forbidden": "拒绝访问（HTTP 403）",
    "HTTP 404 not found": "地址不存在（HTTP 404）",
    "HTTP 410 gone": "来源已关闭（HTTP 410）",
    "HTTP 429 too many requests": "请求过于频繁（HTTP 429）",
    "HTTP 5xx": "服务器出错（HTTP 5xx）",
    "no secure connection": "无法建立安全连接（证书）",
    "no connection: {} cannot be resolved": "连接不上：域名 {} 无法解析",
    "no connection": "连接不上",
    "no answer in time": "没有按时应答",
    "no complete answer within {} s": "{} 秒内没有完整应答",
    "answer unreadable": "应答无法读取",
    "answer too large": "应答过大",
    "an answer larger than {} bytes": "应答超过 {} 字节",
    "an answer that cannot be decompressed": "应答无法解压",
    "more than {} redirects": "重定向超过 {} 次",
    "an unusable address or key": "地址或密钥无法使用",
    "private address refused": "内网地址，不允许访问",
    "a private address (reached by its name)": "域名指向内网地址，不允许访问",
    "a private address": "内网地址，不允许访问",
    "an address of scheme {}: only http and https": "地址的协议是 {}，只允许 http 和 https",
    "captcha verification required": "要求验证码",
    "a login or captcha page instead of an answer": "得到的是登录页或验证码页",
    "redirected to a login or captcha page at {}": "被转到登录页或验证码页 {}",
    "too many requests": "请求过于频繁",
    "an empty answer": "应答为空",
    "an answer that is neither UTF-8 nor GBK": "应答既不是 UTF-8 也不是 GBK",
    "unexpected {}: an answer that cannot be stored, see the log": "应答无法保存（{}），详见日志",
    "other failure": "其他失败",
    "unexpected {}: an internal error, see the log": "内部错误 {}，详见日志",
    # Gates
    "the breaker is open": "熔断中",
    "the gate has no row for this source: configure it first": "这个来源还没有配置闸门",
    "the gate cannot be read or written": "闸门无法读写",
    # Feeds and lists
    "it wants a login; set credentials, and name them: feeds add ADDRESS --credential NAME (docs/feeds.md)": (
        "它要求登录：写好凭据，再指明名称：feeds add 地址 --credential 名称（见 docs/feeds.md）"
    ),
    "the credentials {} are refused; renew them where they are set": "凭据 {} 被拒绝，请在设置它的地方更新",
    "{} may be read by others (mode {}); chmod 600 {}": "{} 别人也能读（权限 {}）：chmod 600 {}",
    "{} cannot be read ({}); create it with mode 600, or unset it": "{} 读不到（{}）：以权限 600 创建，或取消这个设置",
    "{} is no JSON object of names; its form is in docs/feeds.md": ("{} 不是按名称的 JSON 对象，写法见 docs/feeds.md"),
    "{} needs a host, and user and password, or bearer, or cookie": (
        "{} 要有 host，以及 user 和 password、bearer 或 cookie"
    ),
    "no credentials {}: write them to {}": "没有凭据 {}：请写到 {}",
    "credentials {} are for {}, and are not sent to {}: correct them in {}": (
        "凭据 {} 属于 {}，不会发给 {}：请在 {} 中更正"
    ),
    "moved permanently to the address of another source: {}": "永久跳转到另一来源的地址：{}",
    "its options are no JSON: write them anew with follow_sources": (
        "来源的选项（options）不是 JSON，已搁置：请在 follow_sources 中重新写入"
    ),
    "a web page that links to no feed": "是网页，没有链接到订阅源",
    "not a source that can be polled: it has no mp_id": "不是可以抓取的公众号：没有 mp_id",
    "not a list of videos: no code 1 with a list": "不是影片列表：应答不是 code 1 加列表",
    "not a list of videos: rows without vod_id": "不是影片列表：行里没有 vod_id",
    "not a list at {}": "{} 处不是列表",
    "not a usable list: no row has the mapped id, link or title": "列表无法使用：没有一行有所指的编号、链接或标题",
    "not a feed: {} bytes before its first element": "不是订阅源：第一个元素之前有 {} 字节",
    "not a feed: {}": "不是订阅源：{}",
    "not a feed: an empty answer": "不是订阅源：应答为空",
    "not a feed: it declares entities": "不是订阅源：声明了实体",
    "not a feed: it cannot be read": "不是订阅源：无法读取",
    "not a feed: an HTML page": "不是订阅源：是网页",
    "not a feed: broken XML without an entry": "不是订阅源：XML 残缺，没有条目",
    "not a feed: broken XML": "不是订阅源：XML 残缺",
    "not a feed: JSON that cannot be read": "不是订阅源：JSON 无法读取",
    "not a feed: JSON, but no JSON Feed": "不是订阅源：是 JSON，但不是 JSON Feed",
    "an answer without a list of articles": "应答里没有文章列表",
    "an answer without a list of accounts": "应答里没有公众号列表",
    "WeRSS refused the access key (HTTP 401)": "WeRSS 拒绝了访问密钥（HTTP 401）",
    "WeRSS refuses a token that it has just issued (HTTP 401)": "WeRSS 拒绝了刚发的令牌（HTTP 401）",
    "a login without a token": "登录没有得到令牌",
    "the login cannot be kept: {}": "登录状态无法保存：{}",
    "HTTP {} with an answer that is not JSON": "HTTP {}，应答不是 JSON",
    "HTTP {} with an answer of another form": "HTTP {}，应答的形式不对",
    "HTTP {} with an error (code {})": "HTTP {}，应答报错（code {}）",
    "HTTP {} with code {}": "HTTP {}，应答的 code 是 {}",
    "HTTP {} ({}): the path of the API is wrong (the setting WERSS_URL)": (
        "HTTP {}（{}）：接口路径不对（设置 WERSS_URL）"
    ),
    "null instead of an answer: the path of the API is wrong (the setting WERSS_URL)": (
        "应答是 null：接口路径不对（设置 WERSS_URL）"
    ),
    "{} is not set": "没有设置 {}",
    "WeRSS does not know it (code {})": "WeRSS 里没有（code {}）",
    "HTTP 401: {}: correct them in {}": "HTTP 401：{}，请在 {} 中更正",
    # TMDB
    "TMDB reports an error ({}): {}": "TMDB 报错（{}）：{}",
    "there is no such thing ({})": "没有这个条目（{}）",
    "a truncated list": "列表残缺",
    "something other than a packed list": "得到的不是压缩的列表",
    "this client has no fetcher for lists": "没有设置取列表的地址",
    # Douban, search, language models
    "error {}: {}": "服务报错 {}：{}",
    "error {}; {}": "应答报错 {}：{}",
    "{}; it is paid for at open.bochaai.com": "{}；在 open.bochaai.com 充值",
    "an incomplete search": "搜索不完整",
    "an answer without a title": "应答里没有片名",
    "a JSON {} in place of a subject": "应答不是条目（JSON {}）",
    "a JSON {} in place of an answer": "应答格式不对（JSON {}）",
    "asked for {}, answered {}": "查询 {}，得到 {}",
    "nothing found, but silent engines: {}": "没有找到，但有搜索引擎没有应答：{}",
    "no engine answered: {}": "没有搜索引擎应答：{}",
    "an answer without a search response": "应答里没有搜索结果",
    "an answer without `results`": "应答里没有 results",
    "an answer that is no list": "应答不是列表",
    "an answer that is not an object": "应答不是对象",
    "suggestions without ids": "联想结果没有编号",
    "web pages that are no list": "网页结果不是列表",
    "results without addresses": "结果没有网址",
    "an answer without choices": "模型没有给出结果",
    "an answer without content": "模型给出的内容为空",
    "the model refused to write": "模型拒绝写作",
    "the answer was cut off at the maximum length": "内容到了长度上限，被截断",
    "the answer's content is not strict JSON": "模型给出的内容不是 JSON",
    "the answer's content is more than one object": "模型给出的内容不止一个对象",
    "the answer's content is not an object": "模型给出的内容不是对象",
    "the answer lacks {}": "模型给出的内容缺少 {}",
    "the answer's {} is no {}": "模型给出的 {} 不是 {}",
    "the answer's {} does not fit ({})": "模型给出的 {} 不合要求（{}）",
    "the answer ended with {}": "模型的应答以 {} 结束",
    "the service broke the answer off": "模型服务中断了应答",
    "an answer without data (code {}: {})": "应答里没有数据（代码 {}：{}）",
    "error {} ({}): {}": "服务报错 {}（{}）：{}",
    # TMDB
    "{} things to append; at most {} (27)": "附带的内容有 {} 项，最多 {} 项（27）",
    "too many things to append ({})": "附带的内容过多（{}）",
    "an external id of letters and digits is expected": "外部编号应由字母和数字组成",
    "page {}; from 1 to {}": "第 {} 页：应为 1 到 {}",
    "refused ({}): {}": "拒绝（{}）：{}",
    "the key is refused ({}): {}; see {}": "密钥被拒绝（{}）：{}；见 {}",
    "a configuration without images": "配置里没有图片地址",
    "an answer about {} without its {}": "关于 {} 的应答里没有 {}",
    "an answer of {} without a list of results": "{} 的应答里没有结果列表",
    "an answer of find without movie_results": "查找的应答里没有影片结果",
    "an answer that is not about {}": "应答不是关于 {} 的",
    "translations without a list of them": "译名的应答里没有列表",
    "{} is no Douban id: they start at {}": "{} 不是豆瓣编号：编号从 {} 开始",
    # What is no answer
    "a login or captcha page instead of an answer ({})": "应答是登录页或验证码页（{}）",
    "an HTML page instead of JSON": "应答是网页，不是 JSON",
    "an answer that is not JSON": "应答不是 JSON",
}
"""What is said in Chinese for a message; ``{}`` is what varies."""


_CLASS = re.compile(r" \([A-Z]\w*(?:Error|Exception|Timeout)\)")
"""The name of an error's class, which says nothing to who reads Chinese."""


def _pattern(message: str) -> str:
    # What varies ends where the message does, or where another sentence begins.
    varying = r"([^;；]{1,200}?)"
    pattern = varying.join(map(re.escape, message.split("{}")))
    return pattern + r"(?=$|[;；])" if message.endswith("{}") else pattern


@cache
def _patterns() -> tuple[re.Pattern[str], Sequence[tuple[re.Pattern[str], str]]]:
    """Return the pattern of any message, and that of each with its text; the longest first, as one may begin another.

    Made when first needed: most processes show no failure.
    """
    messages = sorted(FAILURES, key=len, reverse=True)
    any_of_them = re.compile("|".join(f"(?:{_pattern(message)})" for message in messages))
    return any_of_them, [(re.compile(_pattern(message)), FAILURES[message]) for message in messages]


def failure_text(message: str, sources: Mapping[str, str] | None = None, *, wanted: Language | None = None) -> str:
    """Return a stored failure in Chinese, or as it was said for who reads English (`core.language.read_in`).

    What is not known stays as it was said.

    Args:
        message: The message, of one failure or of several.
        sources: Names of sources, where messages begin with a source's key.
        wanted: The language; that of who reads by default.
    """
    if (wanted or reader_language()) == "en":
        return message
    any_message, each_message = _patterns()

    def said(match: re.Match[str]) -> str:
        for pattern, text in each_message:
            if found := pattern.fullmatch(match[0]):
                return text.format(*found.groups())
        return match[0]

    text = _CLASS.sub("", any_message.sub(said, message))
    if not sources:
        return text
    keys = "|".join(map(re.escape, sources))
    return re.sub(rf"(^|[;；] ?)({keys}): ", lambda match: f"{match[1]}{sources[match[2]]}：", text)


def messages_saying(text: str) -> Iterator[str]:
    """Yield the messages, as patterns for LIKE, whose Chinese has ``text`` in it; none for a text without Chinese."""
    if text.isascii():
        return
    for message, chinese in FAILURES.items():
        if any(text in part for part in chinese.split("{}")):
            yield f"%{message.replace('%', '')}%".replace("_", r"\_").replace("{}", "%")


def codes_saying(text: str, words: Mapping[str, str]) -> Iterable[str]:
    """Return the keys of ``words`` that are shown as a word with ``text`` in it."""
    return [key for key, word in words.items() if text in word]
