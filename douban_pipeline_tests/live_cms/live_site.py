"""A video site that lives: a real CMS, a resource site that its collector reads, Douban's stand-in, and the pipeline.

Each test has films of its own, so that any of them may be run alone and in any order. The pipeline's clock is three
days behind the CMS's, which is this machine's, and moves on by hand: what a person saves is later than what was
written, however fast a test is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sa

from douban_pipeline.core.database import reading
from douban_pipeline.demo.stand_ins.answers import HttpAnswer
from douban_pipeline.douban.store.migrations import tree_of
from douban_pipeline.douban.store.states import ChangeState
from douban_pipeline.douban.store.tasks import shard_of
from douban_pipeline.douban.undo.drift import Drift, drifts
from douban_pipeline.douban.wording import DRIFT_KINDS, DRIFT_LOOKS
from douban_pipeline.douban.writes.reverted_changes import undone_values
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock
from douban_pipeline_tests.harness.fixtures.library import Library
from douban_pipeline_tests.harness.fixtures.resource_site import FILMS, SERIES, ResourceSite, offered
from douban_pipeline_tests.harness.fixtures.scenario import FAST, Scenario, row_of
from douban_pipeline_tests.harness.rig.live_cms import Form, LiveCms
from douban_pipeline_tests.stand_ins.replay import ReplayServer

BEHIND = timedelta(days=3)
COLLECTED_BEFORE = timedelta(days=20)
"""How long before the pipeline saw it a video was collected."""
FLAG = "rs"
"""What the CMS calls the resource site."""
ACTION_FILMS, CHINESE_SERIES = 6, 13
"""Where the CMS puts the resource site's categories."""
WARNS = "writes_take_hold"
"""A guard that warns for a day of what somebody changed without `vod_time`, an adopted AI annotation say."""
Change = tuple[str, str, frozenset[str]]
"""A row of the change log: operator, action and columns."""
Said = tuple[str, str, str]
"""A row of the report on drift: column, kind and likely author, in its own words."""


@dataclass
class Film:
    """A video of the site.

    Attributes:
        subject: Douban's entry.
        vod_id: Its id in the CMS.
        number: Its number at the resource site.
        form: Its form as somebody opened it before the pipeline wrote anything.
        before: All its columns in the CMS before a test did something.
    """

    subject: dict[str, Any]
    vod_id: int
    number: int
    form: Form
    before: dict[str, Any] = field(default_factory=dict)

    @property
    def shard(self) -> int:
        """The shard it belongs to."""
        return shard_of(self.vod_id)


@dataclass
class LiveSite:
    """The site, with what a test does to it and what it sees afterwards.

    Attributes:
        cms: The CMS.
        source: The resource site.
        scenario: The pipeline over the CMS's database.
    """

    cms: LiveCms
    source: ResourceSite
    scenario: Scenario
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    seen: int = 0

    @property
    def library(self) -> Library:
        return self.scenario.library

    def told(self, *subjects: dict[str, Any]) -> None:
        """Let Douban and the search know these subjects."""
        assert isinstance(self.scenario.upstream, Upstream)
        self.scenario.upstream.learn(subjects)

    def collect(self, subject: dict[str, Any], **columns: Any) -> Film:
        """Let the collector bring a film of which nothing is known yet, some time ago; open its form."""
        number = next(self.numbers)
        row = row_of(subject, number, **columns)
        self.source.videos = [offered(number, row)]
        printed = self.cms.collect(FLAG, self.source.address)
        assert "新加入库" in printed, printed
        [found] = self.library.query("SELECT MAX(vod_id) AS vod_id FROM mac_vod")
        film = Film(subject, found["vod_id"], number, {})
        moment = int((self.library.clock.now() - COLLECTED_BEFORE).timestamp())
        self.library.execute("UPDATE mac_vod SET vod_time = :at WHERE vod_id = :vod", at=moment, vod=film.vod_id)
        film.form = self.cms.admin.open(film.vod_id)
        return film

    def film(self, subject: dict[str, Any], *others: dict[str, Any], **columns: Any) -> Film:
        """Let the collector bring a film, and the pipeline judge it; Douban knows ``others`` too."""
        self.told(subject, *others)
        film = self.collect(subject, **columns)
        self.look()
        self.judge(film)
        self.pass_time(minutes=5)
        self.remember(film)
        return film

    def collect_again(self, film: Film, **columns: Any) -> str:
        """Let the collector come by again: the source says the same of the film, or has ``columns`` changed."""
        said = {**offered(film.number, row_of(film.subject, film.number)), **columns}
        self.source.videos = [said]
        return self.cms.collect(FLAG, self.source.address)

    def look(self) -> None:
        """Let the pipeline take in what is new or changed, by `vod_time`."""
        self.library.intake.changes()

    def sweep(self) -> None:
        """Let it look at every video, whatever its `vod_time`."""
        self.library.intake.sweep(0, 1)

    def judge(self, film: Film) -> None:
        """Let a run of the chain work on what is due in the film's shard."""
        played = self.scenario.play(film.shard)
        assert played.failed_guards <= {WARNS}, played.failed_guards

    def make_due(self, film: Film) -> None:
        """Let the time of the film's next visit come, if it has one."""
        video = self.library.tables.video
        due = (video.c.vod_id == film.vod_id, video.c.douban_next_sync_at.is_not(None))
        self.library.execute(sa.update(video).where(*due).values(douban_next_sync_at=self.library.clock.now()))

    def pass_time(self, **parts: float) -> None:
        self.scenario.clock.advance(**parts)

    def remember(self, film: Film) -> None:
        """From now on only what is new is seen."""
        film.before = self.columns(film)
        log = self.library.tables.log
        [last] = self.library.query(sa.select(sa.func.max(log.c.change_id).label("number")))
        self.seen = last["number"] or 0

    def columns(self, film: Film) -> dict[str, Any]:
        """Return all columns of the film in the CMS."""
        [row] = self.library.query("SELECT * FROM mac_vod WHERE vod_id = :vod", vod=film.vod_id)
        return row

    def changed(self, film: Film) -> dict[str, Any]:
        """Return the columns of the CMS that are not as they were, with what they hold now."""
        now = self.columns(film)
        return {name: value for name, value in now.items() if value != film.before[name]}

    def state(self, film: Film) -> dict[str, Any]:
        """Return our state of the film."""
        return self.library.state(film.vod_id)

    def written(self, film: Film) -> list[Change]:
        """Return what was written, as the change log has it."""
        rows = [row for row in self._logged(film) if row["state"] == ChangeState.APPLIED]
        return [(row["operator"], row["action"], frozenset(row["new_values"])) for row in rows]

    def refused(self, film: Film) -> list[str]:
        """Return why what was to be written was not."""
        return [row["reason"] for row in self._logged(film) if row["state"] != ChangeState.APPLIED]

    def _logged(self, film: Film) -> list[dict[str, Any]]:
        log = self.library.tables.log
        query = sa.select(log).where(log.c.vod_id == film.vod_id, log.c.change_id > self.seen)
        return self.library.query(query.order_by(log.c.change_id))

    def found(self, film: Film) -> list[Drift]:
        """Return what the report on drift finds of the film."""
        return [drift for look in drifts(self.library.services) for drift in look.found if drift.vod_id == film.vod_id]

    def said(self, film: Film) -> set[Said]:
        """Return what the report on drift says of the film."""
        return {(drift.column, DRIFT_KINDS[drift.kind], DRIFT_LOOKS[drift.looks]) for drift in self.found(film)}

    def asked_for(self, film: Film) -> int:
        """Return how often Douban was asked for the film's subject."""
        keys = self.scenario.upstream.requests.describe()["douban"]["keys"]
        return sum(key == str(film.subject["id"]) for key in keys)

    def ruled_out(self, film: Film) -> list[Any]:
        """Return the subjects that automation may not link the film to."""
        with reading(self.library.engine) as connection:
            undone = undone_values(connection, self.library.tables, [film.vod_id])
        return list(undone.get(film.vod_id, {}).get("vod_douban_id", ()))


@contextmanager
def live_site(cms: LiveCms, home: Path, instance: dg.DagsterInstance, **options: Any) -> Iterator[LiveSite]:
    """Yield a site over a CMS that was just installed."""
    clock = FakeClock((datetime.now(UTC) - BEHIND).replace(microsecond=0))
    with ResourceSite() as source, Upstream() as upstream:
        cms.admin.bind(FLAG, FILMS[0], ACTION_FILMS)
        cms.admin.bind(FLAG, SERIES[0], CHINESE_SERIES)
        urls = {"douban_url": upstream.douban_url, "search_url": upstream.search_url}
        given = {"home": home, **urls, **FAST, "videos_at_once": 1, **options}
        with Library(cms.url.render_as_string(hide_password=False), "mac_", clock, given) as library:
            tree_of("mac_").upgrade(library.engine)
            yield LiveSite(cms, source, Scenario(library, upstream, instance))


class Upstream(ReplayServer):
    """Douban and a search that hear of subjects while they serve."""

    def __init__(self) -> None:
        super().__init__(())
        self._known: dict[int, Mapping[str, Any]] = {}
        self._informed: ReplayServer | None = None

    def learn(self, subjects: Sequence[Mapping[str, Any]]) -> None:
        """Know these subjects from now on."""
        self._known |= {int(each["id"]): each for each in subjects}
        informed = ReplayServer([dict(each) for each in self._known.values()])
        informed.requests, informed.faults = self.requests, self.faults
        self._informed = informed

    def respond(self, method: str, target: str, body: bytes, headers: Message) -> HttpAnswer | None:
        """Return the answer of one that knows them."""
        return (self._informed or super()).respond(method, target, body, headers)
