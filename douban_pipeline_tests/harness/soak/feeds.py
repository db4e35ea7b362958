"""The life of followed sources: of every kind on loopback, publishing all the time, ill for a while one by one."""

from __future__ import annotations

import bisect
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine, func, select, text

from douban_pipeline.core.database import reading, run_statement
from douban_pipeline.demo.stand_ins.feed_server import ACCOUNT, PASSWORD, SHOWN, FeedServer, SourceStandIn
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.feeds.store.migrations import TREE
from douban_pipeline.feeds.store.tables import entry, newcomer, source, stats
from douban_pipeline.feeds.subscriptions import SourceRequest, follow
from douban_pipeline_tests.harness.soak.audit.records import Case
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.ground import variables
from douban_pipeline_tests.harness.soak.harms import Harm
from douban_pipeline_tests.harness.soak.life import SystemLife

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class FeedsNotes:
    """What was noted of the sources."""

    published: Mapping[str, frozenset[str]]
    requests: Mapping[str, Sequence[float]]
    per_minute: int
    since: float


def audit_feeds(engine: Engine, notes: FeedsNotes) -> list[Finding]:
    """Return what became of each invariant."""
    with reading(engine) as connection:
        names = dict(connection.execute(select(source.c.source_id, source.c.title)).tuples().all())
        held = connection.execute(select(entry.c.source_id, entry.c.guid, entry.c.title)).tuples().all()
        arrived = connection.execute(select(newcomer.c.source_id, newcomer.c.remote_id)).tuples().all()
        looks = connection.execute(select(stats.c.source_id, stats.c.lease_token, stats.c.last_check_at)).tuples().all()
    return [
        _lost(names, held, notes),
        _doubled(names, held, arrived, notes),
        _asked_too_often(notes),
        _left(names, looks, notes),
    ]


def _lost(names: Mapping[str, str], held: Sequence[tuple[str, str, str]], notes: FeedsNotes) -> Finding:
    case = Case("every item that a source published is stored")
    stored: dict[str, set[str]] = {}
    for source_id, guid, _ in held:
        stored.setdefault(names.get(source_id, source_id), set()).add(guid)
    for name, guids in notes.published.items():
        case.checked += len(guids)
        for guid in sorted(guids - stored.get(name, set())):
            case.breaks(f"{name}: {guid} was published and is not stored")
    return case.finding()


def _doubled(
    names: Mapping[str, str],
    held: Sequence[tuple[str, str, str]],
    arrived: Sequence[tuple[str, str]],
    notes: FeedsNotes,
) -> Finding:
    case = Case("no item is stored twice, and none that nobody published; a newcomer is handed over once")
    seen: set[tuple[str, str]] = set()
    for source_id, guid, title in held:
        case.checked += 1
        name = names.get(source_id, source_id)
        if guid not in notes.published.get(name, frozenset()):
            case.breaks(f"{name}: {guid} ({title}) is stored, and nobody published it")
        if (source_id, guid) in seen:
            case.breaks(f"{name}: {guid} ({title}) is stored twice")
        seen.add((source_id, guid))
    for each in sorted({pair for pair in arrived if arrived.count(pair) > 1}):
        case.breaks(f"{names.get(each[0], each[0])}: newcomer {each[1]} is handed over twice")
    case.checked += len(arrived)
    return case.finding()


def _asked_too_often(notes: FeedsNotes) -> Finding:
    case = Case("no host was asked more than allowed in any 60 seconds")
    for host, moments in notes.requests.items():
        times = sorted(moments)
        case.checked += len(times)
        most = max((bisect.bisect_left(times, at + _MINUTE) - place for place, at in enumerate(times)), default=0)
        case.notes.append(f"{host}: at most {most} of {notes.per_minute}")
        if most > notes.per_minute:
            case.breaks(f"{host}: {most} requests in 60 s, allowed are {notes.per_minute}")
    return case.finding()


def _left(names: Mapping[str, str], looks: Sequence[tuple[str, str, int]], notes: FeedsNotes) -> Finding:
    case = Case("no source stays a dead run's, and each was asked once more when all was well")
    for source_id, token, checked_at in looks:
        case.checked += 1
        name = names.get(source_id, source_id)
        if token:
            case.breaks(f"{name}: still leased by {token}")
        if (checked_at or 0) < int(notes.since):
            case.breaks(f"{name}: not asked since all was well")
    return case.finding()


PER_MINUTE = 40
_FORMS = ("rss", "atom", "jsonfeed", "json", "maccms", "werss")
_CHANNELS_OF_FORM = 3
_HOSTS = 3
_FAULTS = ("failing", "broken", "page", "empty", "throttled", "hanging")
_ILL_SECONDS = (10.0, 40.0)
_LIST = {"path": "data.rows", "id": "no", "title": "name", "link": "href", "time": "at"}
_ASK_AGAIN_SECONDS = 20.0
_DAMAGES = (
    "why = '{not json'",
    "fail_count = NULL, check_count = NULL, hit_count = NULL",
    "next_due_at = NULL",
    "backoff_until = NULL, last_check_at = NULL",
)


class FeedsLife(SystemLife):
    """Sources of six kinds at three hosts; an operator has some of them polled beside what is due."""

    name = "feeds"
    rhythm = (4.0, 12.0)

    def prepare(self) -> Mapping[str, str]:
        """Serve the sources, make the tables and follow all sources."""
        self._closing = ExitStack()
        began, length = time.time(), self.ground.scale.minutes * 60
        # A source shows its last items: all that it publishes in a soak fit in, so that nothing can be missed by right.
        gap = max(length / (SHOWN - 4), 5.0)
        self.servers: list[FeedServer] = []
        names = [f"{form}{number}" for number in range(_CHANNELS_OF_FORM) for form in _FORMS]
        for host in range(_HOSTS):
            mine = {
                name: SourceStandIn(
                    name.rstrip("0123456789"),
                    [began + gap * (each + self.rng.random()) for each in range(-2, int(length / gap))],
                    name,
                    retry_after=10,
                )
                for name in names
                if _host_of(name) == host
            }
            self.servers.append(self._closing.enter_context(FeedServer(time.time, mine)))
        self.settings = FeedsSettings.load(
            home=self.ground.home,
            database_url=self.ground.database("feeds"),
            profile="budget",
            allow_private=True,
            requests_per_minute=PER_MINUTE,
            request_timeout_seconds=4.0,
            werss_url=self.servers[0].base,
            werss_username=ACCOUNT,
            werss_password=PASSWORD,
        )
        self.services: FeedsServices = open_services(self.settings)
        TREE.upgrade(self.services.engine)
        asked = [_request(server, name, each) for server in self.servers for name, each in server.channels.items()]
        follow(self.services, asked, dry_run=False)
        self._ill: dict[tuple[int, str], float] = {}
        self._well_since = self._asked_at = 0.0
        given = ("database_url", "profile", "allow_private", "requests_per_minute")
        more = ("request_timeout_seconds", "werss_url", "werss_username")
        return variables(self.settings, *given, *more, "werss_password")

    def step(self) -> str:
        """Have sources polled, let one fall ill, or let those recover whose time is over."""
        for place, until in list(self._ill.items()):
            if until <= time.monotonic():
                self._set(place, "")
        if self.rng.random() < 0.5:
            host = self.rng.randrange(_HOSTS)
            name, fault = self.rng.choice(sorted(self.servers[host].channels)), self.rng.choice(_FAULTS)
            self._set((host, name), fault)
            self._ill[host, name] = time.monotonic() + self.rng.uniform(*_ILL_SECONDS)
            return f"a source was ill: {fault}"
        names = [name for server in self.servers for name in server.channels]
        return self._poll(self.rng.sample(names, 6))

    def harms(self) -> Mapping[str, Harm]:
        """Return what can be done to it."""
        return {**super().harms(), "rows of sources damaged": self._damage_rows}

    def _damage_rows(self) -> bool:
        """Damage what is stored of two sources, as a half restored backup or another program would."""
        with reading(self.services.engine) as connection:
            ids = sorted(connection.execute(select(stats.c.source_id)).scalars())
        for source_id in self.rng.sample(ids, 2):
            damage = self.rng.choice(_DAMAGES)
            # Plain SQL: the columns' types would refuse what is no JSON.
            update = text(f"UPDATE {stats.name} SET {damage} WHERE source_id = :source_id")
            run_statement(self.services.engine, update.bindparams(source_id=source_id))
        return True

    def _poll(self, names: list[str]) -> str:
        done = self.ground.launch(
            self.name, "poll_sources_now", {"ops": {"poll_now": {"config": {"dry_run": False, "sources": names}}}}
        )
        return "sources polled by hand" if done else "a launch that failed"

    def _set(self, place: tuple[int, str], fault: str) -> None:
        host, name = place
        if not fault:
            self._ill.pop(place, None)
        channels = self.servers[host].channels
        channels[name] = replace(channels[name], fault=fault)

    def heal(self) -> None:
        """Every source is well, and publishes nothing any more."""
        for host, server in enumerate(self.servers):
            for name, channel in list(server.channels.items()):
                self._set((host, name), "")
                past = [at for at in channel.times if at <= time.time()]
                server.channels[name] = replace(server.channels[name], times=past)
        self._well_since = time.time()

    def settled(self) -> bool:
        """Have all polled until each was since all is well: one whose host's gate is open is asked again later."""
        late = select(func.count()).where(
            (stats.c.last_check_at < int(self._well_since) + 1) | (stats.c.fail_count > 0) | (stats.c.lease_token != "")
        )
        with reading(self.services.engine) as connection:
            left = connection.execute(late).scalar_one()
        if not left:
            return not self.ground.under_way(self.name)
        if time.monotonic() - self._asked_at > _ASK_AGAIN_SECONDS and not self.ground.under_way(
            self.name, "poll_sources_now"
        ):
            self._asked_at = time.monotonic()
            self._poll([name for server in self.servers for name in server.channels])
        return False

    def audit(self) -> list[Finding]:
        """Return what became of each invariant."""
        published = {
            name: _guids(name, channel) for server in self.servers for name, channel in server.channels.items()
        }
        requests: dict[str, list[float]] = {}
        for number, server in enumerate(self.servers):
            for each in list(server.seen):
                werss = each.channel.startswith("werss")
                requests.setdefault("WeRSS" if werss else f"host {number + 1}", []).append(each.at)
        notes = FeedsNotes(published, requests, PER_MINUTE, self._well_since)
        return audit_feeds(self.services.engine, notes)

    def summary(self) -> dict[str, Any]:
        """Return how often the sources were asked, and how often one was ill then."""
        seen = [each for server in self.servers for each in server.seen]
        return {
            "requests": len(seen),
            "requests not answered well": sum(each.status not in (200, 304) for each in seen),
        }

    def close(self) -> None:
        """Stop serving."""
        if hasattr(self, "services"):
            self.services.close()
        if hasattr(self, "_closing"):
            self._closing.close()


def _host_of(name: str) -> int:
    return 0 if name.startswith("werss") else int(name[-1]) % _HOSTS


def _request(server: FeedServer, name: str, channel: SourceStandIn) -> SourceRequest:
    if channel.form == "werss":
        return SourceRequest("werss", title=name, mp_id=name, cadence="P0")
    kind = channel.form if channel.form in ("maccms", "json") else "rss"
    options = _LIST if kind == "json" else {}
    return SourceRequest(kind, server.url(name), name, cadence="P0", options=options)


def _guids(name: str, channel: SourceStandIn) -> frozenset[str]:
    numbers = range(len(channel.times))
    forms = {"rss": "item-{}", "atom": "tag:demo,{}", "werss": f"{name}-{{}}"}
    if channel.form == "maccms":  # every second publication is another episode of the first video
        return frozenset(str(1 if number % 2 else number + 2) for number in numbers)
    return frozenset(forms.get(channel.form, "{}").format(number) for number in numbers)
