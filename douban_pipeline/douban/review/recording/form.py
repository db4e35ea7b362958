"""What is wrong with a row by itself, whatever it is about: fields that are missing, foreign or out of range."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.douban.review.recording.wishes import MOST_NOTE, Wish
from douban_pipeline.douban.sources.subject_urls import SMALLEST_ID
from douban_pipeline.douban.store.decisions import NAMING, may_lock
from douban_pipeline.douban.store.states import DecisionAction

LARGEST_ID = 2**32 - 1
"""The CMS's columns of ids hold no more."""

MOST_DAYS = 36_500
"""A century; whoever wants more means for ever."""


def faults(wish: Wish, *, ai_intros: bool) -> Iterator[str]:
    """Say what is wrong with a row by itself, each with its remedy.

    Args:
        wish: The row.
        ai_intros: Whether intros are written at all.
    """
    action = wish.action
    yield from _subject(wish)
    if wish.rank and action is not DecisionAction.choose:
        yield f"{action} 不使用 rank，请改为 0，或改用 choose"
    elif wish.rank < 0:
        yield f"rank 从 1 开始，现为 {wish.rank}"
    if wish.days and action is not DecisionAction.ignore:
        yield f"{action} 不使用 days，请改为 0"
    elif not 0 <= wish.days <= MOST_DAYS:
        yield f"days 需在 0 至 {MOST_DAYS} 之间（0 为永久忽略），现为 {wish.days}"
    if wish.lock and not may_lock(action):
        yield f"{action} 不能同时锁定，请把 lock 改为 false"
    if wish.verdict_id < 0:
        yield f"verdict_id 不能为负数，现为 {wish.verdict_id}；不清楚时请填 0"
    if len(wish.note) > MOST_NOTE:
        yield f"note 最多 {MOST_NOTE} 字，现为 {len(wish.note)} 字，请缩短"
    if action is DecisionAction.redo_intro and not ai_intros:
        yield "AI 简介未开启：请先设置 DOUBAN_PIPELINE_AI_INTROS=true 和 OPENROUTER_API_KEY"


def _subject(wish: Wish) -> Iterator[str]:
    action, douban_id = wish.action, wish.douban_id
    if action in NAMING:
        if not SMALLEST_ID <= douban_id <= LARGEST_ID:
            yield f"{action} 需要 douban_id（{SMALLEST_ID} 至 {LARGEST_ID}），现为 {douban_id}"
    elif action is DecisionAction.choose:
        if not wish.rank and not douban_id:
            yield "choose 需要 rank（第几个候选）或 douban_id（候选中的条目），请填写其一"
    elif douban_id:
        yield f"{action} 不使用 douban_id，请改为 0，或改用 set_id"
