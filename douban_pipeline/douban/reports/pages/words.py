"""What the reports call what the fact guard refuses, and how they name a video."""

from __future__ import annotations

from collections.abc import Mapping

VIOLATIONS: Mapping[str, str] = {
    "length": "字数不符",
    "address": "网址",
    "contact": "联系方式",
    "markup": "标记或代码",
    "emoji": "表情符号",
    "number": "资料外的数字",
    "title": "别的作品名",
    "person": "资料外的人名",
    "claim": "评价、奖项等说法",
    "advert": "推广用语",
    "meta": "谈论简介本身",
    "copy": "照抄原简介",
    "near_copy": "与他片雷同",
}
"""Kinds of what the fact guard refuses; see `intros.factguard`."""


def video(vod_id: int, title: str, year: int | None = None) -> str:
    """Return a video as it is named in a table."""
    return f"{vod_id} {title}（{year}）" if year else f"{vod_id} {title}".rstrip()
