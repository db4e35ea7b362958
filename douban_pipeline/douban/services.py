"""The services that a run of this system uses, built once from the settings. Does not depend on Dagster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlalchemy import Table

from douban_pipeline.cms.maccms import Category, Cms, inspect_cms
from douban_pipeline.cms.people import People
from douban_pipeline.cms.vocabulary import SiteVocabulary
from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.owner import owner_name
from douban_pipeline.core.platform import SourceLimits, SourcePlatform, configure_gate
from douban_pipeline.core.ui.report_files import ReportFolder
from douban_pipeline.douban.known_subjects.known_search import (
    KnownSubjects,
    archived_index,
    loaded_index,
    open_known_subjects,
)
from douban_pipeline.douban.links import LOCATION
from douban_pipeline.douban.pace import MISS_CACHE_AGE
from douban_pipeline.douban.settings import LLM_SECONDS, Settings, variable
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.douban_php import DoubanClient
from douban_pipeline.douban.sources.errors import RULES
from douban_pipeline.douban.sources.known_titles import KnownTitles
from douban_pipeline.douban.sources.search import SearchProvider
from douban_pipeline.douban.store import migrations
from douban_pipeline.douban.store.tables import OwnTables, own_tables
from douban_pipeline.douban.store.task_queue import TaskQueue
from douban_pipeline.douban.writes.change_log import ChangeLog
from douban_pipeline.matching import RULE_VERSION

if TYPE_CHECKING:
    from douban_pipeline.core.gate_base import BaseGate
    from douban_pipeline.core.http import Fetcher
    from douban_pipeline.core.llm import LanguageModel
    from douban_pipeline.douban.evidence.posters import Posters
    from douban_pipeline.douban.evidence.tmdb_titles import TmdbTitles

EMPTY_ANSWERS_IN_ROW = 10
"""Consecutive searches without results after which a known title is searched."""
POSTER_REQUESTS_PER_MINUTE = 120
"""Posters fetched per minute, over all processes: they come from servers of pictures, which allow more than Douban."""

_LLM_TOKENS = 1200


@dataclass(frozen=True)
class Services(SourcePlatform):
    """The platform with the CMS, our tables and our sources, for one process; see `open_services`."""

    settings: Settings
    tables: OwnTables
    location: str = LOCATION
    """Repository and code location of the run, for links into Dagster's UI."""

    @property
    def tree(self) -> MigrationTree:
        """The migrations of our tables."""
        return migrations.tree_of(self.settings.table_prefix)

    @cached_property
    def cms(self) -> Cms:
        """The CMS's tables, inspected on first use.

        Raises:
            DatabaseError: They cannot be reached, or are not those of maccms10.
        """
        return inspect_cms(self.engine, self.settings.table_prefix)

    @cached_property
    def categories(self) -> dict[int, Category]:
        """The site's video categories by id."""
        with reading(self.engine) as connection:
            return self.cms.categories(connection, self.settings.category_kinds)

    @property
    def reports(self) -> ReportFolder:
        """The folder of the reports."""
        return ReportFolder(self.settings.home.absolute() / "reports", self.settings.reports_address, variable("home"))

    @property
    def archive_table(self) -> Table:
        """The table of every raw answer."""
        return self.tables.snapshot

    @property
    def gate_table(self) -> Table:
        """The table of the sources' pacing and breakers."""
        return self.tables.gate

    @property
    def longest_call(self) -> timedelta:
        """The longest time that a call of any source may take."""
        return timedelta(seconds=max(LLM_SECONDS, self.settings.request_timeout_seconds))

    @property
    def zone(self) -> ZoneInfo:
        """The site's time zone."""
        return self.settings.zone

    @property
    def empty_limit(self) -> int:
        """Number of consecutive empty answers after which a search is in doubt."""
        return EMPTY_ANSWERS_IN_ROW

    def source_limits(self) -> dict[str, SourceLimits]:
        """Return the limits of Douban and the searches; those of the language model are set on its first use."""
        settings, quotas = self.settings, self.settings.daily_quotas
        limits = {
            source: SourceLimits(settings.search_requests_per_minute, settings.search_at_once, quotas.get(source))
            for source in settings.search_urls
        }
        requests, concurrency = settings.douban_requests_per_minute, settings.douban_at_once
        return {**limits, DOUBAN: SourceLimits(requests, concurrency, quotas.get(DOUBAN))}

    @property
    def sources_in_use(self) -> frozenset[str]:
        """The sources that are used according to the settings; gates of other sources keep their last state."""
        from douban_pipeline.core.llm import SOURCE as LLM

        settings = self.settings
        further = {LLM: settings.ai_intros, "posters": settings.evidence_from_posters}
        return frozenset({DOUBAN, *settings.search_urls, *(source for source, wanted in further.items() if wanted)})

    def vocabulary(self, type_id: int) -> SiteVocabulary:
        """Return the area and language words of a category's filter bar."""
        return self._vocabularies.get(type_id, SiteVocabulary())

    @cached_property
    def _vocabularies(self) -> dict[int, SiteVocabulary]:
        rows = [(item.type_id, item.parent_id, item.extend) for item in self.categories.values()]
        return SiteVocabulary.by_type(rows)

    @cached_property
    def douban(self) -> DoubanClient:
        """The client for Douban's subjects by id."""
        return DoubanClient(self.source_fetcher(DOUBAN), self.settings.douban_url)

    @cached_property
    def search(self) -> SearchProvider:
        """The search provider that finds candidates."""
        from douban_pipeline.douban.sources.search_chain import search_from

        known = KnownTitles(self.engine, self.tables, self.archive)
        urls, age = self.settings.search_urls, MISS_CACHE_AGE
        return search_from(urls, self.source_fetcher, miss_max_age=age, known=known.choose)

    @cached_property
    def known_subjects(self) -> KnownSubjects | None:
        """Subjects that are found without a request; None if there is no index, or if they are disabled."""
        home = self.settings.home
        return open_known_subjects(loaded_index(home), archived_index(home))

    @cached_property
    def tmdb_titles(self) -> TmdbTitles | None:
        """TMDB's titles of the library's videos; None if the settings disable them."""
        if not self.settings.evidence_from_tmdb:
            return None
        from douban_pipeline.douban.evidence.tmdb_titles import TmdbTitles

        url = self.settings.tmdb_database_url.get_secret_value()
        titles = TmdbTitles(url, setting=variable("tmdb_database_url"))
        self._opened.callback(titles.close)
        return titles

    @cached_property
    def posters(self) -> Posters | None:
        """The comparison of posters; None if the settings disable it."""
        settings = self.settings
        if not settings.evidence_from_posters:
            return None
        from douban_pipeline.douban.evidence import posters  # needs the extra

        quota = settings.daily_quotas.get(posters.SOURCE)
        configure_gate(self.gate, posters.SOURCE, SourceLimits(POSTER_REQUESTS_PER_MINUTE, 4, quota))
        fetcher = posters.open_fetcher(self.gate, self.clock, settings.site_url)
        self._opened.callback(fetcher.close)
        return posters.Posters(fetcher, self.engine, self.tables, self.clock, settings.site_url)

    @cached_property
    def llm(self) -> LanguageModel:
        """The language model that writes intros."""
        from douban_pipeline.core import llm

        settings = self.settings
        limits = SourceLimits(
            settings.llm_requests_per_minute,
            settings.llm_concurrency,
            requests_per_day=settings.daily_quotas.get(llm.SOURCE),
            tokens_per_minute=settings.llm_tokens_per_minute,
            tokens_per_day=settings.llm_tokens_per_day,
        )
        configure_gate(self.gate, llm.SOURCE, limits)
        headers = llm.headers(settings.openrouter_api_key.get_secret_value())
        fetcher = self.fetcher(llm.SOURCE, seconds=LLM_SECONDS, headers=headers)
        return llm.LanguageModel(
            fetcher,
            settings.llm_url,
            model=settings.llm_model,
            fallbacks=settings.llm_fallback_models,
            # A Chinese character is at most about two tokens; the answer contains little else.
            max_tokens=max(_LLM_TOKENS, 3 * settings.intro_max_han),
        )

    @cached_property
    def people(self) -> People:
        """The known names of people, which the fact guard searches in texts."""
        return People(self.engine, self.tables.person, self.clock)

    def source_fetcher(self, source: str, gate: BaseGate | None = None) -> Fetcher:
        """Return the HTTP client of Douban or a search, with its key; ``gate`` as in `fetcher`."""
        from douban_pipeline.douban.sources.search_providers import BochaProvider

        secrets = {BochaProvider.name: self.settings.bocha_api_key}
        key = secrets[source].get_secret_value() if source in secrets else ""
        return self.fetcher(
            source,
            seconds=self.settings.request_timeout_seconds,
            gate=gate,
            missing_max_age=MISS_CACHE_AGE,
            rules=RULES,
            headers={"Authorization": f"Bearer {key}"} if key else None,
        )

    def queue(self, run_id: str) -> TaskQueue:
        """Return the task queue for run ``run_id``."""
        return TaskQueue(self.engine, self.tables, self.clock, owner=owner_name(run_id), lease=self.settings.lease)

    def change_log(self, run_id: str, *, batch_id: str | None = None) -> ChangeLog:
        """Return the change log for writes of run ``run_id``."""
        return ChangeLog(
            self.engine,
            self.tables,
            self.cms,
            self.clock,
            owner=owner_name(run_id),
            run_id=run_id,
            rule_version=RULE_VERSION,
            respect_vod_lock=self.settings.respect_vod_lock,
            batch_id=batch_id,
        )


def open_services(settings: Settings, clock: Clock | None = None, location: str = LOCATION) -> Services:
    """Return the services for ``settings``; nothing is connected until it is used.

    Args:
        settings: The settings.
        clock: Source of the current time; the system's clock by default.
        location: Repository and code location of the run, for links into Dagster's UI.
    """
    return Services(
        engine=open_engine(settings.library_url, setting=variable("database_url")),
        clock=clock or SystemClock(),
        settings=settings,
        tables=own_tables(settings.table_prefix),
        location=location,
    )
