"""What the commands ``feeds …`` do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.language import read_in, terminal_language, terminal_text
from douban_pipeline.feeds import subscriptions, wording
from douban_pipeline.feeds.clients.opml import write_opml
from douban_pipeline.feeds.services import FeedsServices, open_services
from douban_pipeline.feeds.settings import load_settings
from douban_pipeline.feeds.store import polls, sources, stats
from douban_pipeline.feeds.subscriptions import FollowReport, SourceRequest

_LAST_POLLS = 10


@contextmanager
def _opened(*, makes_file: bool = True) -> Iterator[FeedsServices]:
    services = open_services(load_settings())
    try:
        with read_in(terminal_language()):
            yield services.ready(makes_file=makes_file)
    finally:
        services.close()


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def explain(given: str) -> None:
    """Print when a source is polled and why: what its page does not show are the last polls."""
    with _opened(makes_file=False) as services, reading(services.engine) as connection:
        [source] = subscriptions.named_sources(connection, [given])
        [row] = stats.with_sources(connection, source_ids=[source.source_id])
        last = polls.outcomes_of(connection, source.source_id, _LAST_POLLS)
        zone = services.settings.zone
        gap = "—" if row.mean_gap is None else terminal_text("{mean_gap:.1f} h").format(mean_gap=row.mean_gap / 3600)
        hours = "—" if row.avg_publish_hour is None else f"{row.avg_publish_hour:.1f} ± {row.std_publish_hour:.1f}"
        known = terminal_text("{known_count}, mean gap {gap}, hour {hours}")
        lines = {
            source.source_id: f"{source.title} {source.url} {wording.state_text(row.state)}",
            terminal_text("next poll"): wording.moment_text(row.next_due_at, zone),
            terminal_text("reason"): wording.reason_text(row.why, row._asdict()),
            terminal_text("learned cadence"): f"{row.cadence} ({row.frequency_type})",
            terminal_text("publications known"): known.format(known_count=row.known_count, gap=gap, hours=hours),
            terminal_text("back-off until"): wording.moment_text(row.backoff_until, zone),
            terminal_text("last error"): failure_text(row.last_error or "") or "—",
        }
        for label, value in lines.items():
            _say(f"{label}{terminal_text(': ')}{value}")
        for each in last:
            _say(f"{wording.moment_text(each['at'], zone)} {each['outcome']} {failure_text(each['error'])}")


def add(given: Mapping[str, str], *, options: Mapping[str, str], credential: str, dry_run: bool) -> None:
    """Follow a source, the feed of a page, or change the one that has this address."""
    request = SourceRequest(**given, options=options, credential=credential)
    with _opened() as services:
        request, found = subscriptions.find_feed(services, request)
        for other in found.feeds[1:]:
            _say(terminal_text("the page has another feed: {url} {title}").format(url=other.url, title=other.title))
        if found.problem:
            message = terminal_text("no feed was found at this address, which is followed as it is: {problem}")
            _say(message.format(problem=failure_text(found.problem)))
        _report(subscriptions.follow(services, [request], dry_run=dry_run), dry_run=dry_run)


def import_file(path: Path, *, dry_run: bool) -> None:
    """Follow the feeds of an OPML file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemsError([terminal_text("{path} cannot be read: {error}").format(path=path, error=error)]) from error
    with _opened() as services:
        _report(subscriptions.import_opml(services, text, dry_run=dry_run), dry_run=dry_run)


def export() -> None:
    """Print the followed feeds as OPML."""
    with _opened(makes_file=False) as services, reading(services.engine) as connection:
        plain(write_opml(sources.all_sources(connection)).rstrip())


def set_address(given: str, url: str) -> None:
    """Give a source another address."""
    with _opened() as services:
        before, after = subscriptions.set_address(services, given, url)
    said = terminal_text("moved: {title}, {before} → {after}")
    _say(said.format(title=before.title or before.source_id, before=before.url, after=after.url))


def _report(report: FollowReport, *, dry_run: bool) -> None:
    before = terminal_text("would be ") if dry_run else ""
    done = {
        terminal_text("added"): report.added,
        terminal_text("edited"): report.edited,
        terminal_text("known already"): report.known,
    }
    for what, found in done.items():
        for each in found:
            _say(f"{before}{what}{terminal_text(': ')}{each.title or each.url} ({each.kind.value})")
    for refusal in report.refused:
        _say(f"{terminal_text('left out')}{terminal_text(': ')}{refusal}")
