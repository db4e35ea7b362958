"""The rules of a gate as changes of one row in memory: which call may pass next, when, and when the breaker opens.

Nothing here reads a clock or a database; `gate.Gate` loads the row under a lock, applies one change, stores it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from random import Random

from douban_pipeline.core.clock import Day, day_of
from douban_pipeline.core.errors import SourceError, SourceThrottled, SourceUnpaid, SourceWall
from douban_pipeline.core.gate_evidence import EMPTY_IN_A_ROW, FindingEvidence
from douban_pipeline.core.gate_outcomes import IN_A_ROW, SUSPECT, THINGS, CallOutcomes, throttle_pause
from douban_pipeline.core.gate_types import Admitted, Budget, GateRefusal, Outlook, QueuedCall, WaitForTurn
from douban_pipeline.core.gate_usage import GateUsage

SAFETY = 1.02
"""Slots are this much further apart than the limit requires, so that a call sent slightly late cannot make a minute
hold one more than allowed. Costs 2 % of the rate."""
LATEST_START = timedelta(seconds=0.5)
"""A caller later than this for its slot gets a new one: `SAFETY` covers less than 1.2 s, sending included."""
BAN_MINUTES = (30.0, 60.0)
"""How long the breaker stays open after a wall: a source that takes us for a robot must be left alone. Drawn from this
range, so that sites sharing an address do not come back at the same time. Other pauses: see `gate_outcomes`."""
WAITER_LEASE = timedelta(seconds=20)
"""A waiter that has not polled for this long is considered dead and loses its turn."""
ON_THE_WAY = timedelta(seconds=2)
"""How much later than it was admitted a call may reach its source, which may be answering it that much longer."""
HEAD_START = timedelta(minutes=1)
"""How long a probe of what failed last is left to calls for something else."""
LONGEST_NAP = 5.0
"""Seconds after which a waiter polls again at the latest: a call may release tokens, a waiter ahead may give up."""
TURNS_YIELDED = 2
"""How many slots, for each other process, a call leaves to processes that ask for longer before it takes one.

Runs that begin together and share the slots evenly also end together, and while all of them write, nothing is asked.
With the older ones ahead they end one after the other."""
FIRST_CALL_SECONDS = 0.4
"""How long calls are expected to take before one was answered."""
RECENT_CALLS = 20
"""About how many calls count for their mean duration."""
LONGEST_QUEUE = timedelta(minutes=10)
"""A next slot further away than any queue could put it means that the clock was set back."""


class GateState(enum.StrEnum):
    """Whether calls may pass."""

    CLOSED = "closed"
    """The breaker is closed, as in electricity: calls pass."""
    OPEN = "open"
    """No call passes until `open_until`."""
    HALF_OPEN = "half_open"
    """One probe may pass; its outcome closes or reopens the breaker."""


@dataclass(slots=True)
class GateRow:
    """One source's pacing, breaker, counters and evidence.

    `zone` is the time zone of its days, `empty_limit` how many empty answers in a row make it doubted, `at_risk` how
    many calls may fail at once in an outage: the recent consecutive failures and the calls in progress. `call_seconds`
    is the mean duration of recent calls; a gate in a database does not keep it.
    """

    source: str
    next_slot_at: datetime
    interval: timedelta
    concurrency: int
    holders: list[QueuedCall] = field(default_factory=list)
    state: GateState = GateState.CLOSED
    open_until: datetime | None = None
    probe_owner: str | None = None
    probe_until: datetime | None = None
    failures: int = 0
    granted: int = 0
    reason: str = ""
    changed_by: str = ""
    budget: Budget = field(default_factory=Budget)
    usage: GateUsage = field(default_factory=GateUsage)
    outcomes: CallOutcomes = field(default_factory=CallOutcomes)
    evidence: FindingEvidence = field(default_factory=FindingEvidence)
    zone: tzinfo = UTC
    empty_limit: int = EMPTY_IN_A_ROW
    at_risk: int = IN_A_ROW
    call_seconds: float = FIRST_CALL_SECONDS

    def ask(
        self,
        owner: str,
        now: datetime,
        hold: timedelta,
        tokens: int = 0,
        *,
        known: bool = False,
        urgent: bool = False,
        follows: bool = False,
        lasts: timedelta | None = None,
        since: datetime | None = None,
        key: str = "",
    ) -> Admitted | WaitForTurn | GateRefusal:
        """Advance ``owner`` towards its call, in order of arrival, urgent calls first, then older processes.

        Args:
            owner: Unique token of the call.
            now: The current time.
            hold: After how long a place is freed whose call did not end.
            tokens: Estimate of the tokens the call will use.
            known: Whether the call requests something that the source is known to have.
            urgent: Whether a person waits for the answer.
            follows: Whether an urgent call ends what earlier calls began.
            lasts: How long the call takes at most; None is ``hold``.
            since: Since when its process asks: older ones go first, see `TURNS_YIELDED`; None has no rank.
            key: What it asks for: a probe asks for something else than what was answered badly of late.
        """
        self.holders = [holder for holder in self.holders if holder.until > now]
        day = day_of(now, self.zone)
        refused = self._refusal(owner, now, hold, tokens, day, known=known, key=key)
        if refused is not None:
            self.forget(owner)
            return refused
        if self.evidence.doubted and self._asked_by_another(owner, now):
            # Its answer decides whether the source is trusted again, so it does not queue.
            self.forget(owner)
            return WaitForTurn(self._seconds_to_look(0, now))
        holder = self._join(owner, now, urgent=urgent, follows=follows, since=since)
        seconds = self._seconds_to_turn(holder, now, tokens) or self._seconds_yielded(holder, now)
        if seconds > 0:
            holder.slot_at = None
            holder.until = now + WAITER_LEASE
            return WaitForTurn(seconds)
        slot_at = self._slot(holder, now)
        holder.until = max(slot_at, now) + hold
        if slot_at > now:
            return WaitForTurn((slot_at - now).total_seconds())
        holder.granted_at, holder.tokens = now, tokens
        holder.answered_by = holder.until if lasts is None else now + lasts + ON_THE_WAY
        self.usage.grant(now, day.date, tokens)
        self.granted += 1
        return Admitted()

    def outlook(self, now: datetime) -> Outlook:
        """Return what a call that joined the queue now could expect."""
        interval = self.interval.total_seconds()
        waiting = sum(holder.slot_at is None for holder in self.holders if holder.until > now)
        seconds = max((self.next_slot_at - now).total_seconds(), 0.0) + waiting * interval
        is_open = self.state is GateState.OPEN and self.open_until is not None and self.open_until > now
        return Outlook(seconds, interval, self.call_seconds, self.open_until if is_open else None, self.reason)

    def leave(
        self,
        owner: str,
        error: SourceError | None,
        now: datetime,
        rng: Random,
        tokens_used: int | None = None,
        *,
        found: bool | None = None,
        key: str = "",
    ) -> None:
        """Release the place and record how the call ended.

        A bad answer to what the source answered badly before, and something else well since, counts for that alone.

        Args:
            owner: Token of the call.
            error: The error; None for a good answer.
            now: The current time.
            rng: Jitter of the breaker.
            tokens_used: Tokens the call actually used. If None, the estimate counts for an answered call and is
                released for one that was not answered.
            found: Whether a good answer found something (for a probe: something known); None if unknown.
            key: What the call asked for, if the source answered it; empty if no answer came.
        """
        answered = error is None or error.healthy is True
        for holder in self.holders:
            if holder.owner == owner and holder.granted_at is not None and answered:
                self.call_seconds += ((now - holder.granted_at).total_seconds() - self.call_seconds) / RECENT_CALLS
        given_back = None if answered else 0
        probing = self.probe_owner == owner
        self.forget(owner, given_back if tokens_used is None else tokens_used, now)
        if error is not None and error.healthy is None:
            return
        self.usage.finish(now, good=answered)
        if answered:
            self.outcomes.add(now, good=True, key=key)
            self._learn(now, rng, probing=probing, found=found)
            return
        if isinstance(error, SourceThrottled):
            if probing or self.state is GateState.CLOSED:  # calls of one burst count once
                self.outcomes.throttle(self.concurrency)
            self._trip(now + throttle_pause(error.retry_after, rng), error.reason)
            return
        assert error is not None
        plain = not isinstance(error, SourceUnpaid | SourceWall)
        if plain and not probing and self.outcomes.is_blamed(now, key):
            return
        self.failures = 1 if self.outcomes.row_is_old(now) else self.failures + 1
        self.outcomes.add(now, good=False, key=key, broken=error.retryable)
        failing = self.failures >= IN_A_ROW or self.outcomes.failing(now)
        failing = failing and self.state is GateState.CLOSED and self.outcomes.failed_things >= THINGS
        if isinstance(error, SourceUnpaid):
            self._trip(day_of(now, self.zone).ends_at, error.reason)
        elif isinstance(error, SourceWall):
            self._trip(now + timedelta(minutes=rng.uniform(*BAN_MINUTES)), error.reason)
        elif failing or (probing and self.state is GateState.HALF_OPEN):
            self.outcomes.begin_outage(now)
            self._trip(now + self.outcomes.next_pause(rng), error.reason)

    def _learn(self, now: datetime, rng: Random, *, probing: bool, found: bool | None) -> None:
        """Record an answer: it closes a half-open breaker, unless the source is doubted and found nothing."""
        if probing and self.evidence.doubted and found is not None:
            self.evidence.probed(now, found=found)
            if not found:
                until = max(now + self.outcomes.next_pause(rng), self.evidence.earliest_probe(now))
                self.open(until, self.evidence.sentence, "")
                return
        elif found is not None:
            self.evidence.note(now, found=found, limit=self.empty_limit)
        if probing and self.state is GateState.HALF_OPEN and not self.evidence.doubted:
            self._recover(now)
        elif self.state is GateState.CLOSED:
            self.failures = 0

    def was_unhealthy(self, moment: datetime) -> bool:
        """Return whether a call that failed at ``moment`` failed because of the source, not of what was requested."""
        since = self.outcomes.failing_since
        suspected = self.failures >= SUSPECT and self.outcomes.failed_things >= min(self.failures, THINGS)
        suspected = suspected and since is not None and since <= moment
        return suspected or self.outcomes.in_outage(moment)

    def forget(self, owner: str, tokens_used: int | None = None, now: datetime | None = None) -> None:
        """Remove ``owner`` from the queue; an unfinished probe passes to the next caller.

        Args:
            owner: Token of the call.
            tokens_used: Tokens it used; None keeps its estimate.
            now: The current time, needed with ``tokens_used``.
        """
        for holder in self.holders:
            if holder.owner == owner and holder.granted_at is not None and tokens_used is not None and now is not None:
                granted_on = day_of(holder.granted_at, self.zone).date
                self.usage.correct(holder.granted_at, granted_on, holder.tokens, max(tokens_used, 0), now)
        self.holders = [holder for holder in self.holders if holder.owner != owner]
        if self.probe_owner == owner:
            self.probe_owner = self.probe_until = None

    def forget_dead(self, now: datetime, is_dead: Callable[[str], bool]) -> None:
        """Remove owners that ``is_dead`` calls killed, except while their source may still be answering them."""
        self.holders = [
            holder
            for holder in self.holders
            if (holder.answered_by is not None and holder.answered_by > now) or not is_dead(holder.owner)
        ]

    def open(self, until: datetime, reason: str, by: str) -> None:
        """Let no call pass before ``until``, as decided by ``by`` (a person; empty: the breaker itself)."""
        self.state = GateState.OPEN
        self.open_until = until
        self.reason = reason
        self.changed_by = by
        self.probe_owner = self.probe_until = None

    def close(self, now: datetime, by: str) -> None:
        """Let calls pass again, as decided by the person ``by``: reset failures and throttling, trust the source."""
        self.outcomes.openings = self.outcomes.lowered = 0
        if self.evidence.doubted:
            self.evidence.trust(now)
        self._recover(now)
        self.changed_by = by

    def _recover(self, now: datetime) -> None:
        self.state = GateState.CLOSED
        self.open_until = self.probe_owner = self.probe_until = None
        self.failures = 0
        self.reason = ""
        self.changed_by = ""
        self.outcomes.end_outage(now)

    def _trip(self, until: datetime, reason: str) -> None:
        """Open automatically; never shortens the pause of an open breaker."""
        if self.state is GateState.OPEN and self.open_until is not None and self.open_until >= until:
            return
        self.open(until, reason, "")

    def _refusal(
        self, owner: str, now: datetime, hold: timedelta, tokens: int, day: Day, *, known: bool, key: str
    ) -> GateRefusal | None:
        if self.state is GateState.OPEN and self.open_until is not None and self.open_until > now:
            return GateRefusal(self.open_until, self.reason)
        spent = self._spent(tokens, day)
        if spent:
            return GateRefusal(day.ends_at, spent, spent=True)
        doubted = self.evidence.doubted
        if self.state is GateState.CLOSED and not doubted:
            return None
        if self._asked_by_another(owner, now):
            # As long as nothing failed, the others wait for the few seconds this takes.
            return None if self.state is GateState.CLOSED else GateRefusal(self.probe_until or now, self.reason)
        if doubted and not known:
            return GateRefusal(now, self.evidence.sentence, doubted=True)
        if self.state is not GateState.CLOSED:
            until = (self.open_until or now) + HEAD_START
            if now < until and self.outcomes.is_no_probe(now, key):
                return GateRefusal(until, self.reason, others=True)
            self.state = GateState.HALF_OPEN
        self.probe_owner = owner
        self.probe_until = now + hold
        return None

    def _asked_by_another(self, owner: str, now: datetime) -> bool:
        """Return whether another caller's call is about to decide the source's state."""
        others = self.probe_owner not in (None, owner)
        return others and self.probe_until is not None and self.probe_until > now

    def _spent(self, tokens: int, day: Day) -> str:
        """Return which daily quota has no room for one more call, as text; empty if all have."""
        requests, spent = self.usage.of_day(day.date)
        most = self.budget.requests_per_day
        if most is not None and requests >= most:
            return f"今日请求配额已用完（{requests} / {most} 次）"
        most = self.budget.tokens_per_day
        if most is not None and spent + tokens > most:
            return f"今日 token 配额不足（已用 {spent} / {most}，本次预计 {tokens}）"
        return ""

    def _join(self, owner: str, now: datetime, *, urgent: bool, follows: bool, since: datetime | None) -> QueuedCall:
        for holder in self.holders:
            if holder.owner == owner:
                return holder
        holder = QueuedCall(owner, now + WAITER_LEASE, urgent=urgent, since=since, joined_at=now, follows=follows)
        # A call that has a slot keeps it, or the next ones (`_overtake`).
        behind = (
            place for place, other in enumerate(self.holders) if other.slot_at is None and other.rank < holder.rank
        )
        self.holders.insert(next(behind, len(self.holders)), holder)
        return holder

    def _seconds_to_turn(self, holder: QueuedCall, now: datetime, tokens: int) -> float:
        """Return how many seconds ``holder`` must wait before it may take a slot; 0 for "now"."""
        position = self.holders.index(holder)
        # Calls in progress may fail as well: with the failures so far, never admit more than would open the breaker.
        closed = self.state is GateState.CLOSED
        room = self.outcomes.at_once(self.concurrency)
        room = min(room, max(self.at_risk - self.failures, 1)) if closed else room
        if position >= room:
            return self._seconds_to_look(position - room, now)
        limit = self.budget.tokens_per_minute
        if limit is None:
            return 0.0
        if any(ahead.granted_at is None for ahead in self.holders[:position]):
            return self._seconds_to_look(0, now)  # small calls must not starve a large one
        return min(self.usage.seconds_for_tokens(tokens, limit, now), LONGEST_NAP)

    def _seconds_yielded(self, holder: QueuedCall, now: datetime) -> float:
        """Return for how many seconds ``holder`` leaves the next slot to older processes; 0 to take it.

        A slot that is about to pass unused is not left to anybody.
        """
        if holder.urgent or holder.slot_at is not None or holder.since is None or holder.joined_at is None:
            return 0.0
        processes = {other.since for other in self.holders if other.since is not None}
        if min(processes) == holder.since:
            return 0.0
        if now - holder.joined_at >= TURNS_YIELDED * (len(processes) - 1) * self.interval:
            return 0.0
        return max((self.next_slot_at - self.interval / 4 - now).total_seconds(), 0.0)

    def _slot(self, holder: QueuedCall, now: datetime) -> datetime:
        """Return the slot of ``holder``; it takes the next one if it has none or is too late for its own."""
        if holder.slot_at is not None and now - holder.slot_at > LATEST_START:
            if self.next_slot_at == holder.slot_at + self.interval:
                self.next_slot_at = now  # no call queues behind it
            holder.slot_at = None
        if holder.slot_at is None:
            if self.next_slot_at > now + LONGEST_QUEUE + 2 * self.concurrency * self.interval:
                self.next_slot_at = now
            holder.slot_at = max(self.next_slot_at, now)
            self.next_slot_at = holder.slot_at + self.interval
            if holder.urgent and holder.follows:
                self._overtake(holder, holder.slot_at, now)
        return holder.slot_at

    def _overtake(self, holder: QueuedCall, last: datetime, now: datetime) -> None:
        """Give ``holder`` the slot of the first call that waits for its own and begins something; it and those behind
        take the next ones, up to ``last``, the slot that ``holder`` would have had."""
        behind = [
            other
            for other in self.holders
            if other.granted_at is None and other.rank < holder.rank and other.slot_at and now < other.slot_at < last
        ]
        behind.sort(key=lambda other: other.slot_at or last)
        slots = [other.slot_at for other in behind] + [last]
        for other, slot in zip((holder, *behind), slots, strict=True):
            other.slot_at = slot

    def _seconds_to_look(self, ahead: int, now: datetime) -> float:
        """Return after how many seconds a waiter should poll again, with ``ahead`` others before it."""
        # The next in line must not waste a slot; those further back can poll less often.
        often = min(max(self.interval.total_seconds() / 10, 0.02), 0.1)
        # Those ahead take the next slots, so no earlier slot is available.
        soonest = (self.next_slot_at + ahead * self.interval - now).total_seconds() - often
        return max(often * min(ahead + 1, 8), min(soonest, LONGEST_NAP))
