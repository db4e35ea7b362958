"""Creates a table of comments like the CMS's for the demo, distributed like real comments, with composed texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import BigInteger, Column, Connection, Integer, MetaData, SmallInteger, String, Table, insert

from douban_pipeline.demo.comment_shape import generate

_SHORT = "好看|二刷了|哭了|一般般|看完了|推荐|[em:4]|太短了|还行|爱了|值得|笑死"
_CLAUSES = (
    "开头慢了点|后半段越来越好|结尾没看懂|配乐很加分|摄影真讲究|台词写得克制|演员撑住了全片|节奏拖沓|"
    "和朋友一起看的|第二遍才看出伏笔|反派比主角有意思|特效一般|打斗很利落|这段我看了三遍|片尾彩蛋别错过|"
    "小时候看过一次|长大再看完全是两种心情|导演的野心看得出来|剧本有硬伤|女主那场戏封神|细节经得起推敲|"
    "看到一半差点放弃|还好坚持到了最后|字幕有几处错了|画质很清楚|比第一部稳|没有原著好|改编得不错|"
    "气氛到位|逻辑别细想|笑点密集|泪点也真|适合周末看|全家都能看|有点用力过猛|留白很好|不是我的菜|给摄影一个好评"
)
_REPLIES = "同感|说得对|我觉得还好|[em:1]|哪一段？|楼上懂的|不敢苟同|已二刷|谢谢提醒|笑出声|确实|那段我也没看懂|求解释"
_NAMES = "山月|小满|阿青|路过的猫|晚风|老胡|半糖|木子|一颗豆|南城|阿宁|旧时光|清茶|大橘|听雨|小北"
ADVERT = "想看完整版的都来这里 https://watch.example/full 限时免费，不用谢"
"""A comment with purchased likes, for the demo's rule."""
_ADVERT_LIKES, _ADVERT_REPORTS, _ADVERT_BEHIND = 940, 4, 40
_TABLE = Table(
    "mac_comment",
    MetaData(),
    Column("comment_id", BigInteger, primary_key=True),
    *(Column(f"comment_{name}", SmallInteger, nullable=False, default=1) for name in ("mid", "status")),
    *(Column(name, Integer, nullable=False, default=0) for name in ("comment_rid", "comment_pid", "user_id")),
    *(Column(f"comment_{name}", BigInteger, nullable=False, default=0) for name in ("ip", "time")),
    *(Column(f"comment_{name}", Integer, nullable=False, default=0) for name in ("up", "down", "reply", "report")),
    Column("comment_name", String(60), nullable=False, default=""),
    Column("comment_content", String(255), nullable=False, default=""),
)


def make_comments(connection: Connection, count: int, object_id: int, now: datetime) -> None:
    """Create the table ``mac_comment`` with comments on one video, oldest first."""
    _TABLE.create(connection)
    connection.execute(insert(_TABLE), list(_rows(count, object_id, now)))


def _rows(count: int, object_id: int, now: datetime) -> Iterator[dict[str, Any]]:
    draw = random.Random(7)
    shape = generate(count, seed=7)
    clauses, short, names, replies = (text.split("|") for text in (_CLAUSES, _SHORT, _NAMES, _REPLIES))
    # As many roots as fit with their replies; leftover replies go to the last root.
    kept = int(np.searchsorted(np.cumsum(1 + shape.replies), count))
    below = [int(each) for each in shape.replies[:kept]]
    oldest_first = sorted(range(kept), key=lambda row: -shape.age_hours[row])
    below[oldest_first[0]] += count - kept - sum(below)
    number = 0
    for place, row in enumerate(oldest_first):
        number += 1
        root, begun = number, now.timestamp() - 3600 * float(shape.age_hours[row])
        advert = place == kept - _ADVERT_BEHIND
        text = ADVERT if advert else _text(int(shape.length[row]), clauses, short, draw)
        yield _row(number, object_id, 0, begun, text, draw, names) | {
            "comment_up": _ADVERT_LIKES if advert else int(shape.likes[row]),
            "comment_down": int(shape.dislikes[row]),
            "comment_report": _ADVERT_REPORTS if advert else int(shape.reports[row]),
        }
        for _ in range(below[row]):
            number += 1
            at = begun + draw.random() * (now.timestamp() - begun)
            yield _row(number, object_id, root, at, draw.choice(replies), draw, names)


def _row(
    number: int, object_id: int, parent: int, at: float, text: str, draw: random.Random, names: list[str]
) -> dict[str, Any]:
    user = draw.randrange(1, 900)
    given: dict[str, Any] = {"comment_id": number, "comment_rid": object_id, "comment_pid": parent, "user_id": user}
    given |= {"comment_name": names[user % len(names)], "comment_time": int(at), "comment_content": text}
    return given | {"comment_up": 0, "comment_down": 0, "comment_report": 0}


def _text(length: int, clauses: list[str], short: list[str], draw: random.Random) -> str:
    if length < 5:
        return draw.choice(short)
    found = draw.choice(clauses)
    while len(found) < min(length, 240):
        found += draw.choice("，，，。") + draw.choice(clauses)
    return found
