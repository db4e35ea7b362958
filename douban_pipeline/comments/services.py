"""Services that the API, workers and Dagster share, built once per process from the settings."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from redis import Redis
from sqlalchemy import Engine

from douban_pipeline.comments.cache.list_updates import ListFollower
from douban_pipeline.comments.cache.lists import RedisLists, open_lists
from douban_pipeline.comments.films import Films
from douban_pipeline.comments.ids import IdGenerator
from douban_pipeline.comments.model_review import REVIEW_SECONDS, LanguageReviewer, ModelReviewer
from douban_pipeline.comments.plugs import SitePlugs
from douban_pipeline.comments.review import SafetyReview, read_word_lists
from douban_pipeline.comments.scoring.heat_lists import HeatLists
from douban_pipeline.comments.scoring.touched import TouchedHeat
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.shards import lease_node
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.owner import owner_name
from douban_pipeline.core.pictures import KeptPictures
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.settings_base import BASE_PREFIX

if TYPE_CHECKING:
    from douban_pipeline.comments.cache.binlog import BinlogReader

REVIEW_MINUTES = 60
"""Age in minutes above which comments are not sent to the model: by then people have read them."""

PLUG_SECONDS = 1.0
"""Seconds to wait for an answer of friends or badges: the page waits for it."""

LINKS_TO_REVIEW = 2
"""Number of links from which a comment waits for review: one may be a reference."""

REPORTS_TO_REVIEW = 5
"""Number of reports from which a comment waits for review."""

LIST_SECONDS = 600
"""Seconds after which a list without additions expires."""

LIST_SIZE = 1000
"""Number of ids with which a list in Redis is built: further pages come from the database."""

WORKER_BATCH = 500
"""Events that one transaction of a worker applies."""

WORKER_THREADS = 4
"""Shards that a worker processes concurrently."""

_NODE_LEASE = timedelta(minutes=10)
_PUBLISH_SECONDS = 30.0
"""Maximum duration of a command of a sweep to Redis: it sends many at once, and nobody waits for its answer."""


class CommentIds:
    """Generates comment ids under a leased node number, and renews the lease when ids are requested.

    Args:
        owner: Owner of the lease; a process that has the same name later, as in a restarted container, is another one.
    """

    def __init__(self, engine: Engine, clock: Clock, owner: str) -> None:
        self._engine, self._clock, self._owner = engine, clock, f"{uuid4().hex[:8]}.{owner}"[:160]
        self._lock = threading.Lock()
        self._renew_at: datetime | None = None
        self._node = -1
        self._ids: IdGenerator | None = None

    def next(self) -> int:
        """Return a new id."""
        with self._lock:
            now = self._clock.now()
            if self._ids is None or self._renew_at is None or now >= self._renew_at:
                node = lease_node(self._engine, self._owner, now, _NODE_LEASE)
                if self._ids is None or node != self._node:
                    self._ids, self._node = IdGenerator(node, self._clock.now), node
                self._renew_at = now + _NODE_LEASE / 2
            return self._ids.next()


@dataclass(frozen=True)
class CommentsServices(Platform):
    """The comment system as one process uses it; see `open_services`."""

    settings: CommentsSettings
    owner: str
    lists: RedisLists | None
    """None where no Redis is configured."""

    @property
    def tree(self) -> MigrationTree:
        """The migrations of the system's tables."""
        return TREE

    @cached_property
    def numbers(self) -> CommentIds:
        """The ids of new comments."""
        return CommentIds(self.engine, self.clock, self.owner)

    @cached_property
    def heat_lists(self) -> HeatLists | None:
        """Lists of whole sections by heat; None where no Redis is configured."""
        url = self.settings.redis_url.get_secret_value()
        if not url:
            return None
        client = Redis.from_url(url, socket_timeout=_PUBLISH_SECONDS, socket_connect_timeout=_PUBLISH_SECONDS)
        lists = HeatLists(client, self.settings.redis_prefix)
        self._opened.callback(lists.close)
        return lists

    @cached_property
    def films(self) -> Films | None:
        """Names and posters of videos for moderators; None where no library of the CMS is configured."""
        url, settings = self.settings.library_url.get_secret_value(), self.settings
        if not url:
            return None
        library = self.others.engine(url, setting=f"{BASE_PREFIX}DATABASE_URL")
        pictures = KeptPictures(settings.home, self.clock, settings.site_url)
        return Films(library, settings.table_prefix, settings.site_url, pictures)

    def wake_workers(self) -> None:
        """Notify workers that events wait; without Redis, workers find them by polling."""
        if self.lists is not None:
            self.lists.wake()

    @cached_property
    def plugs(self) -> SitePlugs:
        """Other services of the site: friends and badges."""
        settings = self.settings
        plugs = SitePlugs(
            friends_url=settings.friends_url,
            decorations_url=settings.decorations_url,
            token=settings.plug_token.get_secret_value(),
            seconds=PLUG_SECONDS,
        )
        self._opened.callback(plugs.close)
        return plugs

    def _follower(self, lists: RedisLists) -> ListFollower:
        return ListFollower(self.engine, lists, by_events=self.settings.follow == "events")

    def binlog_reader(self) -> BinlogReader | None:
        """Return the reader that updates lists from the binary log; None where they follow events or without Redis.

        Raises:
            ModuleNotFoundError: The extra ``comments-binlog`` is not installed.
            ProblemsError: The server keeps no such log.
        """
        if self.settings.follow != "binlog" or self.lists is None:
            return None
        from douban_pipeline.comments.cache.binlog import BinlogReader

        return BinlogReader(self.engine, self.lists, self._follower(self.lists), self.owner)

    def model_reviewer(self) -> ModelReviewer | None:
        """Return the reviewer that runs a model beside a worker of the same owner; None where none is configured."""
        settings = self.settings
        model: SitePlugs | LanguageReviewer
        if settings.review_url:
            model = SitePlugs(
                review_url=settings.review_url,
                token=settings.plug_token.get_secret_value(),
                seconds=REVIEW_SECONDS,
            )
        elif settings.review_by_llm:
            model = LanguageReviewer(settings, self.clock)
        else:
            return None
        self._opened.callback(model.close)
        return ModelReviewer(self.engine, self.clock, self.owner, model, REVIEW_MINUTES)

    def worker(self) -> Worker:
        """Return a worker that has not started.

        Raises:
            OSError: A word list cannot be read.
        """
        settings = self.settings
        review = SafetyReview(
            read_word_lists(Path(settings.words_folder) if settings.words_folder else None),
            per_minute=settings.publish_per_minute,
            links=LINKS_TO_REVIEW,
            guest_links=settings.guest_links_to_review,
        )
        return Worker(
            self.engine,
            self.clock,
            self.owner,
            review,
            () if self.lists is None else (self._follower(self.lists),),
            batch=WORKER_BATCH,
            threads=1 if self.engine.dialect.name == "sqlite" else WORKER_THREADS,
            reports_to_review=REPORTS_TO_REVIEW,
            heat=TouchedHeat(self.engine, settings.heat_weights),
        )


def open_services(settings: CommentsSettings, role: str = "terminal", clock: Clock | None = None) -> CommentsServices:
    """Return the services for ``settings``; connections are opened on first use.

    Args:
        role: Role of the process, such as worker or service; two roles in one process have different owner names.
        clock: Source of the current time; by default the system's.
    """
    clock = clock or SystemClock()
    engine = open_engine(settings.tables_url, setting=settings.database_setting)
    url = settings.redis_url.get_secret_value()
    lists = None
    if url:
        lists = open_lists(url, clock, prefix=settings.redis_prefix, seconds=LIST_SECONDS, most=LIST_SIZE)
    return CommentsServices(engine, clock, settings, owner_name(role), lists)
