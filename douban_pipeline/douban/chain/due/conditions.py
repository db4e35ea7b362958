"""Conditions for selecting videos: the categories in scope, and pending decisions of people."""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists

from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import DecisionState
from douban_pipeline.douban.store.tables import OwnTables


def in_scope(tables: OwnTables, settings: Settings) -> list[ColumnElement[bool]]:
    """Return the conditions that a video's category is in scope; empty if every category is."""
    type_id = tables.video.c.type_id
    conditions: list[ColumnElement[bool]] = []
    if settings.included_type_ids:
        conditions.append(type_id.in_(settings.included_type_ids))
    if settings.excluded_type_ids:
        conditions.append(type_id.not_in(settings.excluded_type_ids))
    return conditions


def decision_pending(tables: OwnTables) -> ColumnElement[bool]:
    """Return the condition that a person's decision about a video waits."""
    video, decision = tables.video, tables.decision
    return exists().where(decision.c.vod_id == video.c.vod_id, decision.c.state == DecisionState.PENDING)
