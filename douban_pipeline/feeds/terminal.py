"""The commands ``feeds …``: manage followed sources from a terminal, and explain when and why one is polled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import read_in, terminal_language, terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.feeds import subscriptions, websub, wording
from douban_pipeline.feeds.clients.opml import write_opml
from douban_pipeline.feeds.clock_skew import SourceClock
from douban_pipeline.feeds.poller import RUN_MINUTES, Poller
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.settings import load_settings
from douban_pipeline.feeds.store import polls, sources, stats
from douban_pipeline.feeds.subscriptions import FollowReport, SourceRequest
from douban_pipeline.feeds.types import SourceState

_LAST_POLLS = 10


@contextmanager
def opened(*, makes_file: bool = True) -> Iterator[FeedsServices]:
    """Yield the services of a command, their tables ready; texts for people are in the language of the terminal.

    ``makes_file`` as in `Platform.ready`.
    """
    services = open_services(load_settings())
    try:
        with read_in(terminal_language()):
            yield services.ready(makes_file=makes_file)
    finally:
        services.close()


def list_sources(*, due: bool, as_json: bool) -> None:
    """Print every source, or those that are due."""
    with opened(makes_file=False) as services, reading(services.engine) as connection:
        now, zone = services.now(), services.settings.zone
        found: list[dict[str, Any]] = []
        after = ""
        while rows := stats.with_sources(connection, after):
            found += [row._asdict() for row in rows]
            after = rows[-1].source_id
    if due:
        found = [row for row in found if row["next_due_at"] <= now and row["backoff_until"] <= now]
    if as_json:
        names = ("source_id", "kind", "url", "title", "state", "cadence", "frequency_type", "last_check_at")
        more = ("next_due_at", "check_count", "hit_count", "fail_count", "last_error", "why")
        shown = [{name: row[name] for name in (*names, *more)} for row in found]
        plain(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    table = Table(
        terminal_text("source"),
        terminal_text("kind"),
        terminal_text("cadence"),
        terminal_text("last poll"),
        terminal_text("next poll"),
        terminal_text("hits", "terminal"),
        terminal_text("state"),
    )
    with read_in(terminal_language()):
        for row in found:
            active, well = row["state"] == SourceState.ACTIVE, terminal_text("ok")
            failing = failure_text(row["error_kind"]) if row["fail_count"] else well
            table.add_row(
                (row["title"] or row["url"])[:60],
                row["kind"],
                (row["why"] or {}).get("cadence") or row["cadence"],
                wording.moment_text(row["last_check_at"], zone),
                wording.moment_text(row["next_due_at"], zone),
                f"{row['hit_count']}/{row['check_count']}",
                failing if active else wording.state_text(row["state"]),
            )
    console.print(table)
    count = len(found)
    console.print(
        terminal_text("{count} sources{value}").format(count=count, value=terminal_text(" due") if due else "")
    )


def explain(given: str) -> None:
    """Print when a source is polled and why."""
    with opened(makes_file=False) as services, reading(services.engine) as connection:
        [source] = subscriptions.named_sources(connection, [given])
        [row] = stats.with_sources(connection, source_ids=[source.source_id])
        last = polls.outcomes_of(connection, source.source_id, _LAST_POLLS)
        zone = services.settings.zone
        table = Table(show_header=False, title=source.title or source.url, title_justify="left")
        hours = "—" if row.avg_publish_hour is None else f"{row.avg_publish_hour:.1f} ± {row.std_publish_hour:.1f}"
        gap = "—" if row.mean_gap is None else terminal_text("{mean_gap:.1f} h").format(mean_gap=row.mean_gap / 3600)
        learned, by_hand = f"{row.cadence} ({row.frequency_type})", row.manual_cadence
        lines = {
            "id": source.source_id,
            terminal_text("address"): source.url,
            terminal_text("state"): f"{wording.state_text(row.state)} {failure_text(row.state_reason)}".strip(),
            terminal_text("next poll"): wording.moment_text(row.next_due_at, zone),
            terminal_text("reason"): wording.reason_text(row.why, row._asdict()),
            terminal_text("learned cadence"): terminal_text("{learned}; by hand {by_hand}").format(
                learned=learned, by_hand=by_hand
            ),
            terminal_text("publications known"): terminal_text("{known_count}, mean gap {gap}, hour {hours}").format(
                known_count=row.known_count, gap=gap, hours=hours
            ),
            terminal_text("last publication"): wording.moment_text(row.last_article_at, zone),
            terminal_text("its clock"): wording.clock_text(SourceClock.from_json(source.clock).skew) or "—",
            terminal_text("left unread"): wording.gap_text(source.gap, zone) if source.gap is not None else "—",
            terminal_text("checks"): terminal_text(
                "{check_count}, {hit_count} found something, {fail_count} failed in a row"
            ).format(check_count=row.check_count, hit_count=row.hit_count, fail_count=row.fail_count),
            terminal_text("back-off until"): wording.moment_text(row.backoff_until, zone),
            terminal_text("last error"): failure_text(row.last_error or "") or "—",
        }
        for label, value in lines.items():
            table.add_row(label, str(value))
        console.print(table)
        if last:
            shown = Table(
                terminal_text("poll"),
                terminal_text("outcome"),
                terminal_text("new", "terminal"),
                terminal_text("ms"),
                terminal_text("error"),
                title=terminal_text("Last polls"),
                title_justify="left",
            )
            for each in last:
                moment = wording.moment_text(each["at"], zone)
                shown.add_row(
                    moment, each["outcome"], str(each["new"]), str(each["duration_ms"]), failure_text(each["error"])
                )
            console.print(shown)


def add(
    url: str,
    *,
    kind: str,
    title: str,
    cadence: str,
    options: Sequence[str],
    folder: str,
    credential: str,
    dry_run: bool,
) -> None:
    """Follow a source, the feed of a page, or change the one that has this address."""
    pairs = dict(each.partition("=")[::2] for each in options)
    address = {"mp_id": url} if kind == "werss" else {"url": url}
    request = SourceRequest(
        kind=kind, title=title, cadence=cadence, options=pairs, folder=folder, credential=credential, **address
    )
    with opened() as services:
        request, found = subscriptions.find_feed(services, request)
        for other in found.feeds[1:]:
            console.print(
                terminal_text("the page has another feed: {url} {title}").format(url=other.url, title=other.title),
                highlight=False,
                markup=False,
            )
        if found.problem:
            message = terminal_text("no feed was found at this address, which is followed as it is: {problem}")
            console.print(message.format(problem=failure_text(found.problem)), highlight=False, markup=False)
        _print(subscriptions.follow(services, [request], dry_run=dry_run), dry_run=dry_run)


def import_file(path: Path, *, dry_run: bool) -> None:
    """Follow the feeds of an OPML file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemsError([terminal_text("{path} cannot be read: {error}").format(path=path, error=error)]) from error
    with opened() as services:
        _print(subscriptions.import_opml(services, text, dry_run=dry_run), dry_run=dry_run)


def export(path: Path | None) -> None:
    """Write the followed feeds as OPML, to a file or to the terminal."""
    with opened(makes_file=False) as services, reading(services.engine) as connection:
        text = write_opml(sources.all_sources(connection))
    if path is None:
        plain(text.rstrip())
        return
    with replaced(path) as part:
        part.write_text(text, encoding="utf-8")
    console.print(terminal_text("wrote {path}").format(path=path), soft_wrap=True)


def poll(given: Sequence[str]) -> None:
    """Poll the due sources, or those named."""
    with opened() as services:
        only: list[str] = []
        if given:
            with reading(services.engine) as connection:
                only = [each.source_id for each in subscriptions.named_sources(connection, given)]
        seconds = 60 * RUN_MINUTES
        report = Poller(services, seconds=seconds).run(only=only, most=len(only) or 1_000_000)
        websub.renew(services)
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(report.outcomes.items()))
        console.print(
            terminal_text("{polled} sources polled ({outcomes}), {new} new entries").format(
                polled=report.polled, outcomes=outcomes or terminal_text("none was due"), new=report.new
            )
        )
        for problem, count in report.problems.most_common():
            console.print(f"  {failure_text(problem)}: {count}")


def _print(report: FollowReport, *, dry_run: bool) -> None:
    before = terminal_text("would be ") if dry_run else ""
    done = (
        (terminal_text("added"), report.added),
        (terminal_text("edited"), report.edited),
        (terminal_text("known already"), report.known),
    )
    for what, found in done:
        for each in found:
            line = f"{before}{what}{terminal_text(': ')}{each.title or each.url} ({each.kind.value})"
            console.print(line, highlight=False, markup=False)
    for refusal in report.refused:
        console.print(f"{terminal_text('left out')}{terminal_text(': ')}{refusal}", highlight=False, markup=False)
