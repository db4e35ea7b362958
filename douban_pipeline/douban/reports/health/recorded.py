"""What a run left behind that broke off: decisions and writes in our tables, as a clause in Chinese."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database import DatabaseError, reading
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import ChangeState


def recorded_by_run(services: Services, run_id: str) -> str:
    """Return what a run recorded and wrote; that it is unknown where the database does not answer."""
    decision, log = services.tables.decision, services.tables.log
    try:
        with reading(services.engine) as connection:
            decided = connection.scalar(select(func.count()).where(decision.c.run_id == run_id)) or 0
            states = select(log.c.state, func.count()).where(log.c.run_id == run_id).group_by(log.c.state)
            written = dict(connection.execute(states).tuples().all())
    except (SQLAlchemyError, DatabaseError):
        return "数据库此刻无法查询，不知道已记录多少"
    applied, open_ones = written.get(ChangeState.APPLIED, 0), written.get(ChangeState.PREPARED, 0)
    parts = [
        f"已记录 {decided} 条决定" if decided else "",
        f"已写入 CMS {applied} 处" if applied else "",
        f"另有 {open_ones} 处写入由下次运行核对" if open_ones else "",
    ]
    return "，".join(filter(None, parts)) or "没有记录决定，也没有写入 CMS"
