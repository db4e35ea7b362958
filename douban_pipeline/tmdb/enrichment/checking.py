"""Findings about problems that prevent answering or logging questions, with remedies. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.language import said
from douban_pipeline.tmdb.enrichment.spool import Spool, SpoolError
from douban_pipeline.tmdb.services import api_headers
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.troubleshooting import Finding


def check_service(settings: TmdbSettings, spool: Spool) -> Iterator[Finding]:
    """Check TMDB's API key, the switch for writing, and this machine's spool."""
    try:
        api_headers(settings)
    except ProblemsError as error:
        without = said(
            "没有它就不回答提问，也不获取资料", "questions are not answered, and nothing is fetched, without one"
        )
        yield Finding("key", "warn", str(error), without)
    else:
        there = said(
            "有 TMDB API 的密钥；TMDB 是否接受要到第一次请求才知道",
            "there is one for TMDB's API; whether TMDB accepts it is seen at the first request",
        )
        yield Finding("key", "ok", there)
    behind = settings.enrichment_async_write_enable
    when = (
        said("在回答之后", "behind the answers")
        if behind
        else said("在回答之前，回答要等它", "before the answers, which wait for it")
    )
    who = said(
        "隐身的、没有 user_id 或 session_id 的不记录",
        "of who is incognito, and without user_id or session_id, nothing is written",
    )
    if settings.database_url.get_secret_value():
        yield Finding("questions", "ok", said(f"{when}写入；{who}", f"written {when}; {who}"))
    else:
        none = said("`douban-pipeline serve` 不写入提问", "`douban-pipeline serve` writes none")
        remedy = said(f"在 {PREFIX}DATABASE_URL 中给出服务器", f"name a server in {PREFIX}DATABASE_URL")
        yield Finding("questions", "warn", none, remedy)
    try:
        waiting, rejected = spool.counts()
    except SpoolError as error:
        remedy = said(
            "腾出空间，或移走此文件：等待写入的都在其中",
            "free some space, or move the file away: what waits in it is in that file",
        )
        yield Finding("spool", "fail", str(error), remedy)
        return
    shown = said(
        f"{waiting} 个提问等待写入 PostgreSQL，{rejected} 个被它拒绝而搁置",
        f"{waiting} questions wait for PostgreSQL, {rejected} were refused by it and put aside",
    )
    if waiting:
        remedy = said(
            "运行 `douban-pipeline tmdb replay-spool`，或由服务处理",
            "run `douban-pipeline tmdb replay-spool`, or let the service do it",
        )
        yield Finding("spool", "warn", shown, remedy)
    else:
        yield Finding("spool", "warn" if rejected else "ok", shown)
