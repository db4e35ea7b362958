"""The factors: columns read from storage and columns computed from them, with the meaning of each."""

from __future__ import annotations

import numpy as np

from douban_pipeline.comments.heat.graph import Column, Factor, FactorGraph, ValueKind, computed

Z = 1.281551565545
"""Quantile of the lower bounds, which are those of an 80 % interval."""

READ = [
    Factor("likes", ValueKind.NUMBER, "点赞数"),
    Factor("dislikes", ValueKind.NUMBER, "点踩数"),
    Factor("reports", ValueKind.NUMBER, "举报数"),
    Factor("replies", ValueKind.NUMBER, "可见回复数"),
    Factor("length", ValueKind.NUMBER, "正文字数"),
    Factor("level", ValueKind.NUMBER, "发布者等级，0 至 6"),
    Factor("age_hours", ValueKind.NUMBER, "发布至今的小时数"),
    Factor("impressions", ValueKind.NUMBER, "累计曝光数"),
    Factor("likes_day", ValueKind.NUMBER, "近 24 小时点赞数"),
    Factor("impressions_day", ValueKind.NUMBER, "近 24 小时曝光数"),
    Factor("likes_week", ValueKind.NUMBER, "近 7 天点赞数"),
    Factor("impressions_week", ValueKind.NUMBER, "近 7 天曝光数"),
    Factor("owner_liked", ValueKind.FLAG, "UP 主点过赞"),
    Factor("owner_replied", ValueKind.FLAG, "UP 主回复过"),
    Factor("featured", ValueKind.FLAG, "被设为精选"),
    Factor("promoted", ValueKind.FLAG, "推广（广告或商业合作）"),
    Factor("guest", ValueKind.FLAG, "由游客发布"),
    Factor("content", ValueKind.TEXT, "正文"),
]
"""Columns of the storage; a column is read only where a factor needs it."""


def wilson(positive: Column, negative: Column) -> Column:
    """Return the lower bound of the share of positives, 0 to 1; 0 where there are no votes.

    Wilson's score interval with `Z`, as used by Reddit: 1 of 1 is .378, 10 of 11 is .739, 40 of 60 is .585. It rises
    with every positive and falls with every negative, and is computed in place with few temporary columns.
    """
    up = np.asarray(positive, dtype=np.float64)
    total = up + negative
    n = np.maximum(total, 1.0)
    share = up / n
    square = Z * Z
    spread = share * (1.0 - share)
    spread /= n
    spread += square / (4.0 * n * n)
    np.sqrt(spread, out=spread)
    spread *= Z
    low = share
    low += square / (2.0 * n)
    low -= spread
    low /= 1.0 + square / n
    np.maximum(low, 0.0, out=low)
    low[total <= 0] = 0.0
    return low


def _rate(likes: Column, impressions: Column) -> Column:
    # Impressions are reported by clients and may be lost: a user who liked a comment has seen it.
    return wilson(likes, np.maximum(np.asarray(impressions, dtype=np.float64) - likes, 0.0))


@computed(ValueKind.NUMBER, "累计点赞率的下界（点赞 / 曝光），0 至 1")
def like_rate(likes: Column, impressions: Column) -> Column:
    """Return the lower bound of likes per impression."""
    return _rate(likes, impressions)


@computed(ValueKind.NUMBER, "近 24 小时点赞率的下界，0 至 1")
def like_rate_day(likes_day: Column, impressions_day: Column) -> Column:
    """Return the lower bound of likes per impression within a day."""
    return _rate(likes_day, impressions_day)


@computed(ValueKind.NUMBER, "近 7 天点赞率的下界，0 至 1")
def like_rate_week(likes_week: Column, impressions_week: Column) -> Column:
    """Return the lower bound of likes per impression within a week."""
    return _rate(likes_week, impressions_week)


@computed(ValueKind.NUMBER, "点赞占赞踩总数的比例；没有赞踩时为 0.5")
def approval(likes: Column, dislikes: Column) -> Column:
    """Return likes as a share of likes and dislikes."""
    votes = np.asarray(likes, dtype=np.float64) + dislikes
    return np.where(votes > 0, likes / np.maximum(votes, 1.0), 0.5)


@computed(ValueKind.NUMBER, "赞踩的争议度：票数多且赞踩相近时高")
def controversy(likes: Column, dislikes: Column) -> Column:
    """Return (likes + dislikes) ^ (smaller / larger), as used by Reddit; 0 where one of them is 0."""
    up, down = (np.asarray(each, dtype=np.float64) for each in (likes, dislikes))
    low, high = np.minimum(up, down), np.maximum(up, down)
    return np.where(low > 0, (up + down) ** (low / np.maximum(high, 1.0)), 0.0)


@computed(ValueKind.FLAG, "UP 主点过赞或回复过")
def owner_touched(owner_liked: Column, owner_replied: Column) -> Column:
    """Return whether the owner of the section liked the comment or replied to it."""
    return np.asarray(owner_liked, dtype=bool) | np.asarray(owner_replied, dtype=bool)


@computed(ValueKind.FLAG, "正文含网址")
def has_link(content: Column) -> Column:
    """Return whether the text contains a web address."""
    return _each(content, lambda text: "http://" in text or "https://" in text or "www." in text)


@computed(ValueKind.NUMBER, "正文中不同字符所占的比例，0 至 1；刷屏时低")
def variety(content: Column) -> Column:
    """Return the number of distinct characters of the text as a share of its length."""
    return np.fromiter((len(set(text)) / len(text) if text else 0.0 for text in content), np.float64, len(content))


def _each(content: Column, test: object) -> Column:
    assert callable(test)
    return np.fromiter((test(text) for text in content), bool, len(content))


COMPUTED = [
    like_rate,
    like_rate_day,
    like_rate_week,
    approval,
    controversy,
    owner_touched,
    has_link,
    variety,
]

GRAPH = FactorGraph([*READ, *COMPUTED])
"""All factors."""
