"""Taking back intros that were told from another subject than the one their video has now.

A link that is taken back through the change log takes its intro along (`catalog.revert`, `syncing.decisions`). Here
is what is left: an id that somebody changed in the CMS itself, and an intro that was written in the very moment in
which another run changed the link.
"""

from __future__ import annotations

from collections.abc import Collection

from douban_pipeline.core.database import reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.douban.writes.intro_changes import strayed_intros
from douban_pipeline.douban.writes.revert import WITH_ITS_LINK, Selection, revert

BY_CMS = "cms"
"""Operator of what follows from an id that was changed in the CMS: it was not our doing."""


def withdraw_strayed(services: Services, change_log: ChangeLog, shards: Collection[int]) -> int:
    """Take back the strayed intros of ``shards`` that still stand in the CMS as written; return how many.

    A row that the site locked is left alone, and so is a text that somebody rewrote.
    """
    with reading(services.engine) as connection:
        strayed = strayed_intros(connection, services.tables, shards)
        rows = services.cms.rows(connection, sorted({intro.vod_id for intro in strayed}))
    respected = services.settings.respect_vod_lock
    open_ = {vod_id for vod_id, row in rows.items() if not (respected and row["vod_lock"])}
    wanted = tuple(intro.change_id for intro in strayed if intro.vod_id in open_)
    if not wanted:
        return 0
    results = revert(change_log, Selection(wanted), operator=BY_CMS, reason=WITH_ITS_LINK, dry_run=False)
    return sum("vod_content" in result.restored for result in results)
