"""Whether a source that answers is known to find things: only then does an empty answer mean anything.

A broken search may return an empty list for everything without any call failing. So the gate tracks which answers found
something. After too many empty answers in a row, or when their share jumps above the source's own past, the source is
doubted: only calls for something that it found before may pass. Nothing here reads a clock or a database. All datetimes
are aware.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from douban_pipeline.core.gate_outcomes import read_moment, stored_moment

EMPTY_IN_A_ROW = 10
"""Empty answers in a row that make a source doubted, unless a setting says otherwise."""
TRUST = timedelta(minutes=10)
"""How long a source is trusted after it found something known, however many empty answers it gives: the rest of a
library may really be unfindable. So at most six such calls per hour are made while the source works."""
RECENT_ANSWERS = 30
"""The share of empty answers is computed over this many recent answers."""
LEAST_PAST = 200
"""A source with fewer answers has no past to compare with."""
JUMP = 0.35
"""By how much the recent share must exceed the past one."""
MOST_PROBES = 12
"""How many times per hour something known is requested, at most."""
HOUR = timedelta(hours=1)
_WEIGHT = 1 / 500
"""Weight of one answer in the past share."""
MOST_WINDOWS = 12
KEPT = timedelta(days=31)
"""How long a doubt is remembered: longer than any archived answer is used."""


@dataclass(frozen=True, slots=True)
class DoubtWindow:
    """A period in which the empty answers of a source prove nothing.

    Attributes:
        start: When the source was last known to find things.
        end: When it was known to find things again; None while it is doubted.
        revisited: Whether what was judged by those answers has been scheduled to be judged again.
    """

    start: datetime
    end: datetime | None = None
    revisited: bool = False

    def holds(self, moment: datetime) -> bool:
        """Return whether ``moment`` is in this period."""
        return self.start <= moment and (self.end is None or moment <= self.end)


@dataclass(slots=True)
class FindingEvidence:
    """What one source found recently.

    Attributes:
        found_at: When an answer last found something.
        empty_in_row: Answers since that did not.
        empty_since: When the first of these came.
        recent: The last `RECENT_ANSWERS` answers, oldest first: when each came (unix seconds, the stored form, since
            every call reads and stores all of them), and whether it was empty.
        usual: Share of empty answers in the past, from 0 to 1.
        answers: How many answers `usual` is based on.
        trusted_until: Until then no number of empty answers makes the source doubted.
        doubted: Whether the source is doubted.
        why: Why, in Chinese.
        missed: How often something known was requested and not found during this doubt.
        probes: When something known was requested, in the last hour.
        windows: Periods of doubt, oldest first.
    """

    found_at: datetime | None = None
    empty_in_row: int = 0
    empty_since: datetime | None = None
    recent: list[tuple[int, bool]] = field(default_factory=list)
    usual: float = 0.0
    answers: int = 0
    trusted_until: datetime | None = None
    doubted: bool = False
    why: str = ""
    missed: int = 0
    probes: list[datetime] = field(default_factory=list)
    windows: list[DoubtWindow] = field(default_factory=list)

    def note(self, now: datetime, *, found: bool, limit: int) -> None:
        """Count an answer to an ordinary question; ``limit`` empty ones in a row make the source doubted."""
        self.usual += (float(not found) - self.usual) * max(_WEIGHT, 1 / (self.answers + 1))
        self.answers += 1
        self.recent = [*self.recent[1 - RECENT_ANSWERS :], (int(now.timestamp()), not found)]
        if found:
            self.found_at, self.empty_in_row, self.empty_since = now, 0, None
        else:
            self.empty_since = self.empty_since or now
            self.empty_in_row += 1
        if self.doubted or (self.trusted_until is not None and now < self.trusted_until):
            return
        share = sum(empty for _, empty in self.recent) / RECENT_ANSWERS
        if self.empty_in_row >= limit:
            # For a source that never found anything, the doubt starts a little earlier: answers are noted when a call
            # ends.
            start = self.found_at or (self.empty_since or now) - TRUST
            self._doubt(start, now, f"连续 {self.empty_in_row} 次搜索没有结果")
        elif self.answers >= LEAST_PAST and len(self.recent) == RECENT_ANSWERS and share - self.usual > JUMP:
            why = f"最近 {RECENT_ANSWERS} 次搜索中 {share:.0%} 没有结果，以往为 {self.usual:.0%}"
            self._doubt(datetime.fromtimestamp(self.recent[0][0], UTC), now, why)

    def probed(self, now: datetime, *, found: bool) -> None:
        """Record whether something known was found; only for a doubted source."""
        self.probes = [*(at for at in self.probes if now - HOUR < at <= now), now]
        if found:
            self.trust(now)
            return
        self.missed += 1

    @property
    def sentence(self) -> str:
        """Why the source is doubted, as a sentence for people; empty if it is not."""
        if not self.doubted:
            return ""
        missed = f"，且 {self.missed} 次搜不到已知影片" if self.missed else "，正用已知影片核对"
        return f"结果存疑：{self.why}{missed}；恢复前不作“未找到”判定，任务自动延后"

    def earliest_probe(self, now: datetime) -> datetime:
        """Return when something known may be requested again: at most `MOST_PROBES` times an hour."""
        lately = [at for at in self.probes if now - HOUR < at <= now]
        return lately[-MOST_PROBES] + HOUR if len(lately) >= MOST_PROBES else now

    def trust(self, now: datetime) -> None:
        """End the doubt: the source finds things."""
        if not self.missed:
            # A false alarm: the empty answers were correct.
            self.windows = [window for window in self.windows if window.end is not None]
        self.windows = [
            DoubtWindow(window.start, now, window.revisited) if window.end is None else window
            for window in self.windows
        ]
        self.doubted, self.why, self.missed = False, "", 0
        self.found_at, self.empty_in_row, self.empty_since, self.recent = now, 0, None, []
        self.trusted_until = now + TRUST

    def distrust(self, window: DoubtWindow) -> None:
        """Record a period, stated by a person, in which the empty answers prove nothing."""
        self.windows = [*self.windows, window][-MOST_WINDOWS:]

    def doubts(self, moment: datetime) -> bool:
        """Return whether an empty answer at ``moment`` proves nothing."""
        return any(window.holds(moment) for window in self.windows)

    def mark_revisited(self, start: datetime) -> None:
        """Record that what was judged in the window that began at ``start`` will be judged again."""
        self.windows = [
            DoubtWindow(window.start, window.end, revisited=True) if window.start == start else window
            for window in self.windows
        ]

    def _doubt(self, start: datetime, now: datetime, why: str) -> None:
        kept = [window for window in self.windows if now - KEPT < (window.end or now)]
        self.windows = [*kept, DoubtWindow(start)][-MOST_WINDOWS:]
        self.doubted, self.why = True, why

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "found_at": stored_moment(self.found_at),
            "empty_in_row": self.empty_in_row,
            "empty_since": stored_moment(self.empty_since),
            "recent": [[at, int(empty)] for at, empty in self.recent],
            "usual": self.usual,
            "answers": self.answers,
            "trusted_until": stored_moment(self.trusted_until),
            "doubted": self.doubted,
            "why": self.why,
            "missed": self.missed,
            "probes": [stored_moment(at) for at in self.probes],
            "windows": [
                [stored_moment(window.start), stored_moment(window.end), window.revisited] for window in self.windows
            ],
        }

    @classmethod
    def from_json(cls, stored: Any) -> FindingEvidence:
        """Return what `to_json` encoded; None is a source without any record.

        Raises:
            ValueError: It cannot be read; KeyError and TypeError may be raised too.
        """
        if stored is None:
            return cls()
        return cls(
            found_at=read_moment(stored["found_at"]),
            empty_in_row=int(stored["empty_in_row"]),
            empty_since=read_moment(stored["empty_since"]),
            recent=[(int(at), bool(empty)) for at, empty in stored["recent"]],
            usual=float(stored["usual"]),
            answers=int(stored["answers"]),
            trusted_until=read_moment(stored["trusted_until"]),
            doubted=bool(stored["doubted"]),
            why=str(stored["why"]),
            missed=int(stored["missed"]),
            probes=[at for item in stored["probes"] if (at := read_moment(item)) is not None],
            windows=[
                DoubtWindow(start_at, read_moment(end), bool(revisited))
                for start, end, revisited in stored["windows"]
                if (start_at := read_moment(start)) is not None
            ],
        )
