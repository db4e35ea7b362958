"""What keeps questions from being answered or written down, and what to do about it. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.tmdb.enrichment.spool import Spool, SpoolError
from douban_pipeline.tmdb.services import api_headers
from douban_pipeline.tmdb.settings import PREFIX, TmdbSettings
from douban_pipeline.tmdb.troubleshooting import Finding


def check_service(settings: TmdbSettings, spool: Spool) -> Iterator[Finding]:
    """Look at the key of TMDB's API, the switch of writing, and the spool of this machine."""
    try:
        api_headers(settings)
    except ProblemsError as error:
        yield Finding("key", "warn", str(error), "questions are not answered, and nothing is fetched, without one")
    else:
        yield Finding("key", "ok", "there is one for TMDB's API; whether TMDB accepts it is seen at the first request")
    when = "behind the answers" if settings.enrichment_async_write_enable else "before the answers, which wait for it"
    who = "of who is incognito, and without user_id or session_id, nothing is written"
    if settings.database_url.get_secret_value():
        yield Finding("questions", "ok", f"written {when}; {who}")
    else:
        yield Finding(
            "questions", "warn", "`douban-pipeline serve` writes none", f"name a server in {PREFIX}DATABASE_URL"
        )
    try:
        waiting, rejected = spool.counts()
    except SpoolError as error:
        yield Finding("spool", "fail", str(error), "make room, or move the file away: what waits in it is in that file")
        return
    said = f"{waiting} questions wait for PostgreSQL, {rejected} were refused by it and put aside"
    if waiting:
        yield Finding("spool", "warn", said, "run `douban-pipeline tmdb replay-spool`, or let the service do it")
    else:
        yield Finding("spool", "warn" if rejected else "ok", said)
