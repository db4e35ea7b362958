"""Ingests articles from every account of WeRSS and every chosen source of feeds, each once, with its body."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, SQLAlchemyError

from douban_pipeline.core.database import reading, run_patiently
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import GateClosed, NotFound, SourceError, SourceWall
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.werss import SOURCE as WERSS
from douban_pipeline.core.werss import WeRssAccount, WeRssArticle
from douban_pipeline.digest.articles import Body, body_of, clean
from douban_pipeline.digest.clients import feed_entries
from douban_pipeline.digest.clients.feed_entries import FEEDS_SETTING, NoFeeds
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import window_of
from douban_pipeline.digest.store import items
from douban_pipeline.digest.types import FoundArticle

CATCH_UP_DAYS = 14
"""Maximum days before a slot, for accounts not read for longer than the window: older articles are no news."""

FEED = "feed"
_MOST_BODIES = 500
_MOST_ARTICLES = 500
_FUTURE = timedelta(days=1)
_MOST_FAILED_BODIES = 5
"""Bodies in a row that cannot be read, after which the others are left to the next slot."""

_Result = TypeVar("_Result")

logger = logging.getLogger(__name__)


@dataclass
class IngestReport:
    """Result of ingesting.

    Attributes:
        accounts: Accounts requested.
        read: Accounts that answered.
        extended: Accounts whose window was longer than usual.
        seen: Articles in the windows.
        new: Articles that were not known.
        bodies: Bodies received.
        bodies_pending: Bodies not available yet.
        given_up: Articles whose body did not become available while they were in the window.
        werss_well: Whether WeRSS answered; None if it is not used.
        problems: Problems, as sentences.
        alert: Problems that need a person; empty for none.
    """

    accounts: int = 0
    read: int = 0
    extended: list[str] = field(default_factory=list)
    seen: int = 0
    new: int = 0
    bodies: int = 0
    bodies_pending: int = 0
    given_up: int = 0
    werss_well: bool | None = None
    problems: list[str] = field(default_factory=list)
    alert: str = ""
    window_start: datetime | None = None

    @property
    def failed(self) -> bool:
        """Whether no source could be read although there are sources."""
        return bool(self.problems) and self.read == 0

    def counters(self) -> dict[str, int | bool | None]:
        """Return the counters stored with the slot."""
        return {
            "accounts": self.accounts,
            "accounts_read": self.read,
            "articles_seen": self.seen,
            "articles_new": self.new,
            "bodies": self.bodies,
            "bodies_pending": self.bodies_pending,
            "werss_well": self.werss_well,
        }


@dataclass
class Ingest:
    """Ingests articles for one slot.

    Attributes:
        services: The services.
        run_id: The slot that ingests the articles.
        renew: Called between requests; raises if the slot is lost.
        until: Articles published later belong to a later slot; None if there is none.
    """

    services: DigestServices
    run_id: int
    renew: Callable[[], None] = lambda: None
    until: datetime | None = None

    def run(self) -> IngestReport:
        """Read every source; a failing one is recorded and does not stop the others."""
        report = IngestReport()
        settings = self.services.settings
        with reading(self.services.engine) as connection:
            last = items.last_reads(connection)
        if not settings.werss_url and not settings.feed_sources:
            report.problems.append("没有来源：设置 DOUBAN_PIPELINE_WERSS_URL 或 DOUBAN_PIPELINE_DIGEST_FEED_SOURCES")
        if settings.werss_url:
            self._from_werss(report, last)
        if settings.feed_sources:
            self._from_feeds(report, last)
        if settings.werss_url:
            self._bodies(report)
        return report

    # --- WeRSS

    def _from_werss(self, report: IngestReport, last: Mapping[str, datetime | None]) -> None:
        services = self.services
        try:
            followed = self._followed()
        except SourceError as error:
            self._note_problem(report, error)
            report.werss_well = False
            return
        report.werss_well = True
        if not followed:
            report.problems.append("WeRSS 没有关注任何公众号")
        ids = {each.account_id for each in followed}
        self._patiently(lambda connection: items.set_followed(connection, WERSS, ids))
        for account in followed:
            self.renew()
            report.accounts += 1
            try:
                self._account(report, account, last.get(account.account_id))
            except SourceError as error:
                self._note_problem(report, error, account.name or account.account_id)
                self._note_account(account, last_error=failure_text(error.reason)[:500], last_error_at=services.now())
                if isinstance(error, GateClosed):
                    break  # the other accounts would fail as well
            except (ValueError, DataError):
                # Such as a text that the database does not take: the other accounts are read nevertheless.
                logger.exception("account %s could not be stored", account.account_id)
                problem = "应答无法处理，见日志"
                report.problems.append(f"{account.name or account.account_id}：{problem}")
                self._note_account(account, last_error=problem, last_error_at=services.now())

    def _followed(self) -> list[WeRssAccount]:
        chosen = self.services.settings.werss_accounts
        if chosen:
            return [WeRssAccount(account_id, "", None) for account_id in chosen]
        return self.services.werss.accounts()

    def _account(self, report: IngestReport, account: WeRssAccount, last_good_at: datetime | None) -> None:
        services, settings = self.services, self.services.settings
        now = services.now()
        longest = timedelta(days=CATCH_UP_DAYS)
        end = self.until or now + _FUTURE
        window = window_of(self.until or now, settings.window, max(longest, settings.window), last_good_at)
        listed = services.werss.articles(account.account_id, int(window.start.timestamp()), _MOST_ARTICLES)
        found = [article for each in listed if (article := _found(each, account, window.start, end))]
        synced = self._synced(account)
        name = clean(synced.name or account.name or next((each.account_name for each in listed), ""))

        def store(connection: Connection) -> int:
            new = items.insert_articles(connection, self.run_id, found, now)
            known = {"synced_at": datetime.fromtimestamp(synced.synced_at, UTC)} if synced.synced_at else {}
            items.note_account(
                connection,
                account.account_id,
                WERSS,
                now,
                name=name[:300],
                last_error="",
                followed=True,
                **self._read_until(now),
                **known,
            )
            return new

        new = self._patiently(store)
        report.read += 1
        report.seen += len(found)
        report.new += new
        report.window_start = min(filter(None, (report.window_start, window.start)))
        if window.extended:
            report.extended.append(name or account.account_id)

    def _read_until(self, now: datetime) -> dict[str, datetime]:
        """Return until when an account is read; nothing for a slot of the past, which reads nothing newer."""
        return {"last_good_at": now} if self.until is None else {}

    def _synced(self, account: WeRssAccount) -> WeRssAccount:
        """Return an account with its last sync; if that cannot be read, its articles are ingested nevertheless."""
        try:
            return self.services.werss.account(account.account_id)
        except SourceError:
            return account

    def _note_account(self, account: WeRssAccount, **values: object) -> None:
        now = self.services.now()
        known = {"name": clean(account.name)[:300]} if account.name else {}
        self._patiently(
            lambda connection: items.note_account(connection, account.account_id, WERSS, now, **known, **values)
        )

    def _bodies(self, report: IngestReport) -> None:
        services = self.services
        now = services.now()
        since = min(filter(None, (report.window_start, now - services.settings.window)))
        with reading(services.engine) as connection:
            waiting = items.waiting_bodies(connection, since, _MOST_BODIES)
        failed = 0
        for row in waiting:
            if row.mp_id.startswith(f"{FEED}:"):
                continue
            self.renew()
            try:
                body = body_of(services.werss.article_html(row.external_id))
                failed = 0
            except NotFound:
                body = Body(missing="WeRSS 没有这篇文章，或发布者已删除（404）", gone=True)
            except SourceError as error:
                self._note_problem(report, error, "正文")
                failed += 1
                if failed >= _MOST_FAILED_BODIES or isinstance(error, GateClosed | SourceWall):
                    report.bodies_pending += len(waiting) - report.bodies - report.bodies_pending
                    break
                # One article that WeRSS cannot give keeps no other waiting.
                body = Body(missing=f"正文读取失败：{failure_text(error.reason)}")
            self._store_body(row.content_item_id, body)
            report.bodies += bool(body.text)
            report.bodies_pending += not body.text and not body.gone
        report.given_up = self._patiently(lambda connection: items.give_up_bodies(connection, since, services.now()))

    def _store_body(self, content_item_id: int, body: Body) -> None:
        now = self.services.now()

        def store(connection: Connection) -> None:
            if body.text:
                items.store_body(connection, content_item_id, body.text, now)
            else:
                items.note_missing_body(connection, content_item_id, body.missing, now, gone=body.gone)

        self._patiently(store)

    # --- feeds

    def _from_feeds(self, report: IngestReport, last: Mapping[str, datetime | None]) -> None:
        services, settings = self.services, self.services.settings
        try:
            feeds = feed_entries.database(services.others, settings.feeds_tables_url)
            chosen = feed_entries.sources(feeds, settings.feed_sources)
        except (NoFeeds, DatabaseError, SQLAlchemyError) as error:
            report.problems.append(_feeds_problem(error))
            return
        missing = set(settings.feed_sources) - {feed_entries.EVERY} - set(chosen)
        report.problems += [f"feeds 没有来源 {each[:64]}" for each in sorted(missing)]
        followed = {f"{FEED}:{source_id}" for source_id in chosen}
        self._patiently(lambda connection: items.set_followed(connection, FEED, followed))
        for source_id, name in chosen.items():
            self.renew()
            report.accounts += 1
            if not self._source(report, feeds, source_id, name, last.get(f"{FEED}:{source_id}")):
                return

    def _source(
        self, report: IngestReport, feeds: Engine, source_id: str, name: str, last_good_at: datetime | None
    ) -> bool:
        """Store the new entries of one source; return False if the database of feeds does not answer any more."""
        services, settings = self.services, self.services.settings
        now = services.now()
        longest = max(timedelta(days=CATCH_UP_DAYS), settings.window)
        window = window_of(self.until or now, settings.window, longest, last_good_at)
        try:
            found = feed_entries.entries(feeds, source_id, name, window.start, self.until)[:_MOST_ARTICLES]
        except SQLAlchemyError as error:
            report.problems.append(_feeds_problem(error))
            return False
        mp_id = f"{FEED}:{source_id}"

        def store(connection: Connection) -> int:
            new = items.insert_articles(connection, self.run_id, found, now)
            known = {"name": name[:300], "last_error": "", "followed": True, **self._read_until(now)}
            items.note_account(connection, mp_id, FEED, now, **known)
            return new

        report.new += self._patiently(store)
        report.read += 1
        report.seen += len(found)
        if window.extended:
            report.extended.append(name)
        return True

    def _patiently(self, work: Callable[[Connection], _Result]) -> _Result:
        return run_patiently(self.services.engine, work, self.services.clock)

    def _note_problem(self, report: IngestReport, error: SourceError, what: str = "") -> None:
        sentence = f"{what or 'WeRSS'}：{failure_text(error.reason)}"
        if sentence not in report.problems:
            report.problems.append(sentence)
        if "拒绝登录" in error.reason or "access key" in error.reason:
            report.alert = f"WeRSS：{failure_text(error.reason)}"


def _feeds_problem(error: Exception) -> str:
    reason = str(getattr(error, "orig", None) or error).splitlines()[0][:300]
    return f"feeds：{f'无法读取数据库（{FEEDS_SETTING}）：{reason}' if isinstance(error, SQLAlchemyError) else reason}"


def _found(row: WeRssArticle, account: WeRssAccount, start: datetime, end: datetime) -> FoundArticle | None:
    """Return a listed article in the form for ingestion; None for one without a time, or outside the window."""
    if row.published_at is None:
        return None
    published_at = datetime.fromtimestamp(row.published_at, UTC)
    if not start <= published_at <= end:
        return None
    return FoundArticle(
        external_id=row.article_id[:191],
        mp_id=(row.account_id or account.account_id)[:100],
        mp_name=clean(row.account_name or account.name),
        title=clean(row.title) or "（无标题）",
        url=clean(row.url),
        description=clean(row.description),
        published_at=published_at,
    )
