"""The services of a run of the feeds system, created once from the settings. Does not depend on Dagster."""

from __future__ import annotations

import base64
import json
import math
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import httpx
from sqlalchemy import Table

from douban_pipeline.core.addresses import admission
from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.http import Fetcher
from douban_pipeline.core.language import read_in, terminal_text
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import SourceLimits, SourcePlatform, configure_gate
from douban_pipeline.core.settings_base import BASE_PREFIX
from douban_pipeline.core.ui.report_files import ReportFolder
from douban_pipeline.core.werss import RULES as WERSS_RULES
from douban_pipeline.core.werss import SOURCE as WERSS
from douban_pipeline.core.werss import WeRss
from douban_pipeline.core.werss_login import FileSessions, WeRssLogin
from douban_pipeline.feeds.clients.source_client import (
    RULES,
    AccountClient,
    EntryReading,
    SourceClient,
    WebClient,
    gate_name,
)
from douban_pipeline.feeds.failures import FeedRefused
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.sources import host_of
from douban_pipeline.feeds.store.tables import gate, snapshot
from douban_pipeline.feeds.types import Source, SourceKind

_WAYS = ({"user", "password"}, {"bearer"}, {"cookie"})


@dataclass(frozen=True, slots=True)
class Credential:
    """Credentials with which sources are asked: name, host (with a port, unless it is the scheme's own), and headers.

    They belong to one host, so that a source whose address changes never carries a secret elsewhere; the store keeps
    only their names. docs/feeds.md has the form of the file.
    """

    name: str
    host: str
    headers: Mapping[str, str] = field(repr=False)


def read_credentials(file: str, setting: str) -> dict[str, Credential]:
    """Return the credentials of a file by name; none without a file.

    Args:
        file: Its path; empty for none.
        setting: Its variable, for errors.

    Raises:
        ProblemsError: The file cannot be read, others may read it, or an object cannot be used. No error shows a
            secret.
    """
    return _parsed(_private_text(Path(file), setting), f"{setting}={file}") if file else {}


def _private_text(path: Path, setting: str) -> str:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            message = terminal_text("{setting}: {path} may be read by others (mode {mode:o}); chmod 600 {path}")
            raise ProblemsError([message.format(setting=setting, path=path, mode=mode)])
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = terminal_text("{setting}: {path} cannot be read ({error}); create it with mode 600, or unset it")
        raise ProblemsError([message.format(setting=setting, path=path, error=type(error).__name__)]) from None


def _parsed(text: str, setting: str) -> dict[str, Credential]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = terminal_text("{setting} is no JSON object of names; its form is in docs/feeds.md")
        raise ProblemsError([message.format(setting=setting)])
    return {name: _credential(name, given, setting) for name, given in found.items()}


def _credential(name: str, given: object, setting: str) -> Credential:
    fields = given if isinstance(given, dict) and all(isinstance(each, str) for each in given.values()) else {}
    host = fields.get("host", "").strip().lower()
    secrets = {key: value for key, value in fields.items() if key != "host"}
    # A line break would begin another header.
    clean = all(value and value.isprintable() for value in secrets.values())
    if not host or set(secrets) not in _WAYS or not clean or not 0 < len(name) <= 64:
        message = terminal_text("{setting}: {name} needs a host, and user and password, or bearer, or cookie")
        raise ProblemsError([message.format(setting=setting, name=name[:64] or "?")])
    if "bearer" in secrets:
        headers = {"Authorization": f"Bearer {secrets['bearer']}"}
    elif "cookie" in secrets:
        headers = {"Cookie": secrets["cookie"]}
    else:
        pair = f"{secrets['user']}:{secrets['password']}".encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return Credential(name, host, headers)


HOST_CONCURRENCY = 2
"""Concurrent requests to one host, over all processes: one slow answer does not keep the others waiting."""

MAX_ENTRIES = 500
"""Maximum number of entries read from one answer; a page of older ones follows in the next request."""

MAX_BODY_BYTES = 8_000_000
"""Maximum size of an answer in bytes, uncompressed: more is no list of articles, and would fill the memory."""

LOCATION = "__repository__@feeds"
"""Repository and code location as named in `workspace.yaml`; a run's own location takes precedence."""


@dataclass(frozen=True)
class FeedsServices(SourcePlatform):
    """The platform plus clients of sources, for one process; see `open_services`."""

    settings: FeedsSettings
    location: str = LOCATION
    """Repository and code location of the run, for links into Dagster's UI."""
    _configured: set[str] = field(default_factory=set, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def tree(self) -> MigrationTree:
        """The migrations of the system's tables."""
        return TREE

    @property
    def archive_table(self) -> Table:
        """The table of raw answers."""
        return snapshot

    @property
    def gate_table(self) -> Table:
        """The table of the hosts' gates."""
        return gate

    @property
    def longest_call(self) -> timedelta:
        """The maximum duration of a call to any source."""
        return timedelta(seconds=self.settings.request_timeout_seconds)

    @property
    def lease(self) -> int:
        """Seconds after which the source of an unfinished poll is due again: a request under it ends under it."""
        return math.ceil(15 * self.settings.request_timeout_seconds)

    @property
    def reports(self) -> ReportFolder:
        """The folder of the reports."""
        return ReportFolder(
            self.settings.home.absolute() / "reports", self.settings.reports_address, f"{BASE_PREFIX}HOME"
        )

    def now(self) -> int:
        """Return the current time in whole seconds."""
        return int(self.clock.now().timestamp())

    def host_of(self, source: Source) -> str:
        """Return the host whose limits apply to a source's requests."""
        return host_of(self.settings.werss_url) if source.kind is SourceKind.WERSS else host_of(source.url)

    def limits(self) -> SourceLimits:
        """Return the limits of one host."""
        return SourceLimits(self.settings.requests_per_minute, HOST_CONCURRENCY)

    @cached_property
    def reading(self) -> EntryReading:
        """How answers are parsed."""
        return EntryReading(self.settings.zone, MAX_ENTRIES)

    @contextmanager
    def client(self, source: Source) -> Iterator[SourceClient]:
        """Yield the source's client; its connections are closed with the block, so that memory does not grow with
        hosts."""
        if source.kind is SourceKind.WERSS:
            yield AccountClient(self.werss, self.reading)
            return
        with self.web_fetcher(source) as fetcher:
            yield WebClient(fetcher, self.reading, self.secret_headers(source))

    @cached_property
    def credentials(self) -> dict[str, Credential]:
        """The credentials of sources, by name.

        Raises:
            ProblemsError: They cannot be read.
        """
        return read_credentials(self.settings.credentials_file, self.settings.variable("credentials_file"))

    def secret_headers(self, source: Source) -> Mapping[str, str]:
        """Return the headers of a source's credentials; empty without credentials.

        Raises:
            FeedRefused: They are not there, or belong to another host; it counts as a 401, and says what to do.
        """
        if not source.credential:
            return {}
        host, variable = host_of(source.url), self.settings.variable("credentials_file")
        try:
            with read_in("en"):  # failures are stored in English
                found = self.credentials.get(source.credential)
        except ProblemsError as error:
            raise FeedRefused(host, f"HTTP 401: {error.problems[0]}", 401) from None
        if found is None:
            raise FeedRefused(host, f"HTTP 401: no credentials {source.credential}: write them to {variable}", 401)
        if found.host != host:
            wanted = f"credentials {source.credential} are for {found.host}, and are not sent to {host}"
            raise FeedRefused(host, f"HTTP 401: {wanted}: correct them in {variable}", 401)
        return found.headers

    def web_fetcher(self, source: Source) -> Fetcher:
        """Return a fetcher for a source's host, to be closed after use."""
        name = gate_name(self.host_of(source))
        self._configure(name)
        seconds = self.settings.request_timeout_seconds
        return Fetcher(
            name,
            self.gate,
            self.archive,
            self.clock,
            timeout=seconds,
            deadline=seconds,
            attempts=1,  # the next poll is the retry
            max_bytes=MAX_BODY_BYTES,
            rules=RULES,
            hop=self._redirected,
            admit=admission(
                name,
                allow_private=self.settings.allow_private,
                remedy="DOUBAN_PIPELINE_FEEDS_ALLOW_PRIVATE=true allows it",
            ),
        )

    def _redirected(self, target: httpx.URL) -> AbstractContextManager[object]:
        """Return a place at the gate of the host that a redirect leads to: it is paced like any other."""
        name = gate_name(host_of(str(target)))
        self._configure(name)
        return self.gate.slot(name, lasts=self.longest_call)

    def _configure(self, name: str) -> None:
        with self._lock:
            if name in self._configured:
                return
        configure_gate(self.gate, name, self.limits())
        with self._lock:
            self._configured.add(name)

    @cached_property
    def werss(self) -> WeRss:
        """Client of WeRSS, at the address of the settings.

        Raises:
            FeedRefused: No address is set.
        """
        settings = self.settings
        if not settings.werss_url:
            raise FeedRefused(WERSS, "no connection: DOUBAN_PIPELINE_WERSS_URL is not set")
        configure_gate(self.gate, WERSS, self.limits())
        fetcher = self.fetcher(WERSS, seconds=settings.request_timeout_seconds, attempts=1, rules=WERSS_RULES)
        access = settings.werss_access_key.get_secret_value()
        login = WeRssLogin(settings.werss_username, settings.werss_password.get_secret_value(), access)
        sessions = FileSessions(settings.home, settings.werss_url, settings.werss_username)
        return WeRss(fetcher, settings.werss_url, login, self.clock, sessions)


def open_services(settings: FeedsSettings, clock: Clock | None = None, location: str = LOCATION) -> FeedsServices:
    """Return the services for ``settings``; connections are opened when first used.

    Args:
        settings: The settings.
        clock: The system's clock by default.
        location: Repository and code location of the run, for links into Dagster's UI.
    """
    engine = open_engine(settings.tables_url, setting=settings.database_setting)
    return FeedsServices(engine=engine, clock=clock or SystemClock(), settings=settings, location=location)
