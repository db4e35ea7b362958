"""Configurable errors of the simulated model: one violation in an otherwise faithful introduction; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from douban_pipeline.demo.stand_ins.introduction_texts import (
    LENGTH,
    Facts,
    Length,
    fill,
    han,
    introduction,
    names,
    seeded,
)

_SURNAMES = "陆沈顾程许韩唐苏叶江"
_GIVEN = "景川|亦舟|南乔|知远|若棠|云笙|怀瑾|清越|书白|望舒"
_NAMED = (
    "导演{}为此筹备良久|主演{}的表现尤为沉稳|编剧{}把对白写得克制|由{}饰演的角色令人难忘|演员{}也有亮眼的发挥|"
    "{}客串出演了关键角色"
)
_YEARS = "故事的蓝本可以追溯到{}年|这个题材早在{}年就有人写过|背景设定在{}年|剧本的初稿完成于{}年"
_NUMBERS = "全部拍摄动用了{}位群众演员|光是剧本就改了{}稿|外景横跨{}座城市|筹备前后花了{}个月"
_LINKS = "更多内容请见https://www.{0}.com/v/1|完整资料收录在www.{0}.cn|正片地址为http://{0}.top/play?id=7|可到{0}.com继续了解"
_HOSTS = "kanpian|yingshidaquan|mfdy|dianyingku"
_CONTACTS = (
    "添加微信kanju888领取资源|加入QQ群8674213一同讨论|合作请联系movie@kanpian.example|关注公众号影迷小站获取片源"
)
_TITLES = "与《{}》一脉相承|可以看作《{}》的姊妹篇|改编自同名小说之外还借鉴了《{}》|让人想起《{}》的开头"
_MADE_UP_TITLES = "雾港旧事|无声的渡口|南山以北|灯火未眠|旧城回响|长夜微光"
_AWARDS = (
    "曾获金像奖最佳影片提名|在戛纳电影节上捧回金棕榈奖|荣获飞天奖优秀剧集|拿下奥斯卡最佳外语片|凭借出色的摄影斩获金鸡奖"
)
_RATINGS = "豆瓣评分居同类前列|口碑爆棚，评分持续走高|观众打出了接近满分的评价|票房表现领跑同档期"
_PLATFORMS = "现已在爱奇艺独家上线|腾讯视频会员抢先看|可在优酷免费观看|正在芒果TV热播"
_MARKUP = ("<b>{}</b>", "<p>{}</p>", "**{}**", "# {}", '<a href="/vod/1.html">{}</a>')
_EMOJI = "🎬🔥🍿😭👍"


@dataclass(frozen=True, slots=True)
class InventionRequest:
    """Input of a faulty introduction.

    Attributes:
        facts: The fact sheet.
        length: Minimum and maximum number of Chinese characters requested.
        people: All people known to the simulation, including the film's own.
        titles: All titles known to the simulation, including the film's own.
        salt: Changes the wording and the choice of the violation's form.
    """

    facts: Facts
    length: Length = LENGTH
    people: Sequence[str] = ()
    titles: Sequence[str] = ()
    salt: str = ""


def invented(kind: str, request: InventionRequest) -> str:
    """Return the introduction that `introduction` writes from the same facts, with one violation of ``kind``.

    Args:
        kind: One of `INVENTIONS`.
        request: Input of the introduction.
    """
    rng = seeded(request.facts, f"{kind} {request.salt}")
    return _MAKERS[kind](request, rng, introduction(request.facts, request.length, request.salt))


def invented_answer(kind: str, people: Sequence[str], titles: Sequence[str]) -> Callable[[Facts, Length, str], str]:
    """Return the writer of introductions with one violation of ``kind``; see `InventionRequest`."""
    return lambda facts, length, salt: invented(kind, InventionRequest(facts, length, people, titles, salt))


def _adding(sentence: Callable[[InventionRequest, Random], str]) -> Callable[[InventionRequest, Random, str], str]:
    """Return a function that inserts one more sentence after a sentence of the faithful text."""

    def make(request: InventionRequest, rng: Random, text: str) -> str:
        sentences = text.removesuffix("。").split("。")
        sentences.insert(rng.randint(1, len(sentences)), sentence(request, rng))
        return "。".join(sentences) + "。"

    return make


def _choose(rng: Random, forms: str) -> str:
    return rng.choice(forms.split("|"))


def _invented_name(request: InventionRequest, rng: Random) -> str:
    while True:
        name = rng.choice(_SURNAMES) + _choose(rng, _GIVEN)
        if name not in request.people:
            return _choose(rng, _NAMED).format(name)


def _borrowed_name(request: InventionRequest, rng: Random) -> str:
    own = {name for key in ("directors", "writers", "actors") for name in names(request.facts, key)}
    said = str(request.facts)
    others = [name for name in request.people if len(name) > 1 and name not in own and name not in said]
    return _choose(rng, _NAMED).format(rng.choice(others)) if others else _invented_name(request, rng)


def _invented_year(request: InventionRequest, rng: Random) -> str:
    said = str(request.facts)
    return _choose(rng, _YEARS).format(rng.choice([year for year in range(1950, 2025) if str(year) not in said]))


def _invented_number(request: InventionRequest, rng: Random) -> str:
    said = str(request.facts)
    number = rng.choice([number for number in range(31, 400) if str(number) not in said])
    return _choose(rng, _NUMBERS).format(number)


def _invented_title(request: InventionRequest, rng: Random) -> str:
    said = str(request.facts)
    others = [title for title in (*request.titles, *_MADE_UP_TITLES.split("|")) if title and title not in said]
    return _choose(rng, _TITLES).format(rng.choice(others))


def _copied(request: InventionRequest, rng: Random, text: str) -> str:
    """Return the text with its neutral sentences replaced by the unchanged synopsis, as much of it as fits."""
    lead = text.split("。")[0]
    least, most = request.length
    synopsis = str(request.facts.get("synopsis") or "").strip()
    room = most - han(lead)
    while han(synopsis) > room:
        synopsis = synopsis[: len(synopsis) - max(1, han(synopsis) - room)]
    sentences = [lead, *filter(None, [synopsis.rstrip("。")])]
    return fill(sentences, request.facts, rng, least)


def _too_short(request: InventionRequest, _: Random, text: str) -> str:
    short = ""
    for sentence in text.removesuffix("。").split("。"):
        if short and han(short + sentence) >= request.length[0]:
            break
        short += sentence + "。"
    return short


def _too_long(request: InventionRequest, rng: Random, text: str) -> str:
    return fill(text.removesuffix("。").split("。"), request.facts, rng, request.length[1] + 40)


def _markup(_: InventionRequest, rng: Random, text: str) -> str:
    lead, rest = text.split("。", 1)
    return rng.choice(_MARKUP).format(lead + "。") + rest


def _emoji(_: InventionRequest, rng: Random, text: str) -> str:
    return text + rng.choice(_EMOJI)


def _same_text(request: InventionRequest, _: Random, text: str) -> str:
    """Return the sentence that names the film, followed by the same text as for every other film."""
    lead = text.split("。")[0]
    return fill([lead], {}, Random("the same for all"), request.length[0] + 60)


_MAKERS: Mapping[str, Callable[[InventionRequest, Random, str], str]] = {
    "invented_name": _adding(_invented_name),
    "borrowed_name": _adding(_borrowed_name),
    "invented_year": _adding(_invented_year),
    "invented_number": _adding(_invented_number),
    "invented_link": _adding(lambda _, rng: _choose(rng, _LINKS).format(_choose(rng, _HOSTS))),
    "invented_contact": _adding(lambda _, rng: _choose(rng, _CONTACTS)),
    "invented_title": _adding(_invented_title),
    "invented_award": _adding(lambda _, rng: _choose(rng, _AWARDS)),
    "invented_rating": _adding(lambda _, rng: _choose(rng, _RATINGS)),
    "invented_platform": _adding(lambda _, rng: _choose(rng, _PLATFORMS)),
    "copied": _copied,
    "same_text": _same_text,
    "too_short": _too_short,
    "too_long": _too_long,
    "markup": _markup,
    "emoji": _emoji,
}

INVENTIONS = tuple(_MAKERS)
"""``invented_name``: an unknown person, with a role. ``borrowed_name``: a person from another film.
``invented_year``, ``invented_number``, ``invented_title``, ``invented_award``, ``invented_rating``,
``invented_platform``, ``invented_link``, ``invented_contact``: such a fact without a basis in the fact sheet.
``copied``: the synopsis unchanged; faithful if the sheet has none. ``same_text``: the text used for every other film
too. ``too_short`` and ``too_long``: outside the requested length. ``markup``: HTML or Markdown. ``emoji``: one at the
end."""
