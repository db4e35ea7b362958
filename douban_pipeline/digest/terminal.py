"""The commands ``digest run``, ``list``, ``why``, ``rubric`` and ``login``: slots from a terminal."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta

from rich.markup import escape

from douban_pipeline.core.console import console, plain, print_columns
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError, SourceError
from douban_pipeline.core.interrupts import ends_at_once
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.digest import rubrics, wording
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import load_settings
from douban_pipeline.digest.slots import SKEW, SlotKey
from douban_pipeline.digest.store import items, slots
from douban_pipeline.digest.types import AnalysedStatus, BodyState, SlotRow

_MOST_SHOWN = 20


@contextmanager
def _opened(*, makes_file: bool = True) -> Iterator[DigestServices]:
    services = open_services(load_settings())
    try:
        yield services.ready(makes_file=makes_file)
    finally:
        services.close()


def run(given: str, *, dry_run: bool) -> bool:
    """Run a slot, by default the last due one, without Dagster; return whether it succeeded.

    Raises:
        ProblemsError: There is no such slot, or it is not due yet.
    """
    # Imported here: what runs a slot takes longer to load than a list takes.
    from douban_pipeline.digest.slot_run import EndedSlot, TooEarly, run_slot

    with _opened() as services:
        key = _named(services, given) if given else _last_due(services)
        if dry_run:
            with reading(services.engine) as connection:
                row = slots.find(connection, key.run_date, key.slot)
                waiting = items.counts_by_status(connection).get(AnalysedStatus.WAITING, 0)
            state = terminal_text("has never run") if row is None else row.status.value
            console.print(
                terminal_text("{key} {state}; {waiting} articles wait. Nothing was done.").format(
                    key=key, state=state, waiting=waiting
                )
            )
            return True
        stopped = terminal_text("stopped; the next run continues")
        try:
            with ends_at_once(stopped):
                ended = run_slot(services, key, f"terminal-{uuid.uuid4().hex[:8]}")
        except TooEarly as error:
            raise ProblemsError([str(error)]) from error
    if not isinstance(ended, EndedSlot):
        console.print(f"{key}: {wording.CLAIMS[ended]}")
        return True
    status, findings = ended.status.value, len(ended.findings)
    line = terminal_text("{key} {status}: {findings} findings, {messages} messages for the outbox").format(
        key=key, status=status, findings=findings, messages=ended.messages
    )
    console.print(line, highlight=False)
    for line in filter(None, (ended.error, ended.push_refusal)):
        console.print(escape(line), highlight=False)
    return ended.status.value == "success"


def list_slots(days: int, *, as_json: bool) -> None:
    """Show the slots of the last days."""
    with _opened(makes_file=False) as services:
        today = services.now().astimezone(services.settings.zone).date()
        with reading(services.engine) as connection:
            rows = slots.between(connection, today - timedelta(days=days - 1), today)
    names = ("articles_new", "analysed", "failed", "findings", "best_score")
    if as_json:
        shown = [
            {"day": str(row.run_date), "slot": row.slot, "status": row.status.value, "error": row.error}
            | {name: row.counters.get(name) for name in names}
            for row in rows
        ]
        plain(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    titles = (
        terminal_text("day"),
        terminal_text("slot"),
        terminal_text("status"),
        terminal_text("new"),
        terminal_text("analysed"),
        terminal_text("failed"),
        terminal_text("findings"),
        terminal_text("best"),
        terminal_text("problems"),
    )

    def cells(row: SlotRow) -> Sequence[str]:
        numbers = ["—" if row.counters.get(name) is None else str(row.counters[name]) for name in names]
        return (str(row.run_date), row.slot, wording.SLOT_STATUSES[row.status], *numbers, row.error[:80])

    print_columns(titles, map(cells, rows))
    console.print(terminal_text("{rows} slots in {days} days").format(rows=len(rows), days=days))


def explain(words: str) -> None:
    """Print the state of the articles whose titles contain ``words``.

    Raises:
        ProblemsError: There are none.
    """
    with _opened(makes_file=False) as services:
        zone = services.settings.zone
        with reading(services.engine) as connection:
            rows = items.by_title(connection, words, _MOST_SHOWN)
    if not rows:
        short = repr(words[:60])
        raise ProblemsError([terminal_text("no article's title holds {short}").format(short=short)])
    table = Table(
        terminal_text("article"),
        terminal_text("account"),
        terminal_text("published"),
        terminal_text("body"),
        terminal_text("analysis"),
        terminal_text("score"),
        terminal_text("title"),
    )
    for row in rows:
        body = wording.BODIES[BodyState(row.body_state)]
        status = wording.ANALYSED[AnalysedStatus(row.analyzed_status)]
        table.add_row(
            str(row.content_item_id),
            escape(row.mp_name),
            local_time(row.published_at, zone),
            f"{body} {row.body_reason}".strip(),
            f"{status} {escape(row.analysis_error)}".strip(),
            "—" if row.score is None else str(row.score),
            escape(row.title[:60]),
        )
    console.print(table)


def write_rubric() -> None:
    """Write the subject and rubric files for the operator to edit, and print the current version."""
    services = open_services(load_settings())
    for path in rubrics.write_defaults(services.rubric_folder):
        console.print(terminal_text("wrote {path}").format(path=path), soft_wrap=True)
    version = f"{services.rubric.hash[:12]} ({services.rubric.origin})"
    console.print(terminal_text("in force: {version}").format(version=version), soft_wrap=True)
    services.close()


def log_in() -> None:
    """Delete the stored token and refused logins of WeRSS, log in once now, and open its gate."""
    with _opened() as services:
        if not services.settings.werss_url:
            raise ProblemsError(
                [terminal_text("{werss_url} is not set").format(werss_url=services.settings.variable("werss_url"))]
            )
        try:
            count = services.log_in_to_werss()
        except SourceError as error:
            raise ProblemsError([terminal_text("not logged in: {reason}").format(reason=error.reason)]) from error
    console.print(terminal_text("logged in; WeRSS follows {count} accounts").format(count=count))


def _named(services: DigestServices, given: str) -> SlotKey:
    try:
        key = SlotKey.parse(given)
    except ValueError as error:
        raise ProblemsError([str(error)]) from error
    if key.slot not in services.settings.schedule_slots:
        known = ", ".join(services.settings.schedule_slots)
        raise ProblemsError(
            [terminal_text("there is no slot {slot}; slots: {known}").format(slot=key.slot, known=known)]
        )
    return key


def _last_due(services: DigestServices) -> SlotKey:
    now, zone = services.now(), services.settings.zone
    today: date = now.astimezone(zone).date()
    keys = [
        SlotKey(day, slot) for day in (today - timedelta(days=1), today) for slot in services.settings.schedule_slots
    ]
    return max(key for key in keys if key.scheduled_at(zone) - SKEW <= now)
