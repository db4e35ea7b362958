"""A site that lives: one random act a step, of its collectors, its editors, other programs, or its reviewers.

What is chosen leans to where the pipeline is at work (what it wrote lately, what is due, what is locked), for two
writers that never meet prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from sqlalchemy.exc import SQLAlchemyError

from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.douban.services import Services
from douban_pipeline_tests.harness.soak.journal import Journal
from douban_pipeline_tests.harness.soak.outside import Outside
from douban_pipeline_tests.harness.soak.people import Launch, People
from douban_pipeline_tests.harness.soak.site import Generated, Site

_FORMS_OPEN = 20
_LOOKED_AT = 100
"""Newest, or most due, of which one is chosen."""

_WHERE = (
    "SELECT vod_id FROM {prefix}douban_log ORDER BY change_id DESC LIMIT :most",
    "SELECT vod_id FROM {prefix}douban_video WHERE douban_next_sync_at IS NOT NULL "
    "ORDER BY douban_next_sync_at LIMIT :most",
    "SELECT vod_id FROM {prefix}douban_video WHERE intro_locked = 1 ORDER BY intro_ai_last_at DESC LIMIT :most",
    "SELECT vod_id FROM {prefix}douban_video WHERE douban_id_locked = 1 ORDER BY douban_id_lock_time DESC LIMIT :most",
)
"""Where the pipeline is at work, each by an index."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens now and then: its name, how often beside the others, and what it does.

    `do` returns how many videos it changed.
    """

    name: str
    weight: int
    do: Callable[[], int]


class Life:
    """What happens to a library while the pipeline works on it."""

    def __init__(
        self,
        *,
        services: Services,
        journal: Journal,
        rng: Random,
        seed: int,
        videos: int,
        most_arrivals: int,
        launch: Launch,
    ) -> None:
        prefix = services.settings.table_prefix
        self.rng = rng
        self.outside = Outside(services.settings.library_url, journal, prefix=prefix)
        self.source = Generated(seed, datetime.now(UTC))
        self.site = Site(self.outside, self.source, rng)
        self.people = People(services, journal, rng=rng, source=self.source, launch=launch)
        self._next, self._last = videos + 1, videos + most_arrivals
        self._binned: list[int] = []
        self._gone: list[int] = []
        self._acts = self._all_acts()

    def step(self) -> str:
        """Do one thing; return what, in a word or two. A database that does not answer is no error of the site's."""
        [act] = self.rng.choices(self._acts, [act.weight for act in self._acts])
        try:
            return act.name if act.do() else f"{act.name}: nothing"
        except (SQLAlchemyError, DatabaseError) as error:
            # Whatever was under way is in the journal, as done, missed or unknown.
            return f"{act.name}: {type(error).__name__}"

    def settle(self) -> int:
        """Look at what became of writes whose fate is unknown, and finish what reviewers began; return how many."""
        self.people.settle()
        return self.outside.settle()

    def close(self) -> None:
        """Close the connections of its own."""
        self.outside.close()

    def _all_acts(self) -> list[Act]:
        return [
            Act("arrived", 8, self._arrive),
            Act("collected", 24, lambda: self.site.collect(self._somebody())),
            Act("opened a form", 8, self._open_form),
            Act("saved a form", 8, self._save_form),
            Act("batch edit", 4, lambda: self.site.edit_in_batch([self._somebody() for _ in range(8)])),
            Act("typed an id", 5, lambda: self.site.set_id(self._somebody(), self._anybody())),
            Act("vod_lock", 5, lambda: self.site.toggle_lock(self._somebody())),
            Act("recycled", 3, self._recycle),
            Act("brought back", 3, self._bring_back),
            Act("deleted", 2, self._delete),
            Act("collected anew", 2, self._collect_anew),
            Act("other program", 10, lambda: self.site.write_directly(self._somebody())),
            Act("reviewer", 12, self.people.decide),
            Act("operator", 2, self.people.revert_writes),
        ]

    def _arrive(self) -> int:
        came = 0
        for _ in range(self.rng.randint(1, 3)):
            if self._next > self._last:
                break
            self._next += 1
            came += self.site.arrive(self._next - 1)
        return came

    def _open_form(self) -> int:
        if len(self.site.forms) >= _FORMS_OPEN:
            return self.site.save_form()
        return self.site.open_form(self._somebody())

    def _save_form(self) -> int:
        # Forms stay open for a while: long enough for the pipeline to write in between.
        if len(self.site.forms) < _FORMS_OPEN // 4:
            return self.site.open_form(self._somebody())
        return self.site.save_form()

    def _recycle(self) -> int:
        vod_id = self._somebody()
        done = self.site.recycle(vod_id)
        self._binned += [vod_id] * bool(done)
        return done

    def _bring_back(self) -> int:
        if not self._binned:
            return 0
        return self.site.bring_back(self._binned.pop(self.rng.randrange(len(self._binned))))

    def _delete(self) -> int:
        vod_id = self._somebody()
        done = self.site.delete(vod_id)
        self._gone += [vod_id] * bool(done)
        return done

    def _collect_anew(self) -> int:
        """Collect once more what was deleted: it comes under another key."""
        if not self._gone or self._next > self._last:
            return 0
        self._next += 1
        return self.site.arrive(self._next - 1, like=self._gone.pop())

    def _somebody(self) -> int:
        way = self.rng.randrange(len(_WHERE) + 2)
        if way < len(_WHERE):
            found = self.outside.query(_WHERE[way], most=_LOOKED_AT)
            if found:
                return int(self.rng.choice(found)[0])
        return self._anybody()

    def _anybody(self) -> int:
        query = "SELECT vod_id FROM {prefix}vod WHERE vod_id >= :first ORDER BY vod_id LIMIT 1"
        first = self.rng.randint(1, self._next)
        found = self.outside.query(query, first=first) or self.outside.query(query, first=1)
        return int(found[0][0]) if found else 1
