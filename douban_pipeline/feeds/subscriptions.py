"""Adds, edits and pauses sources and imports lists of them, as requested by a person: validated first, then stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection

from douban_pipeline.core.addresses import admission
from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.errors import PrivateAddress, ProblemsError, SourceError
from douban_pipeline.core.language import reader_text
from douban_pipeline.feeds.cadence import RSS_CADENCE_INTERVALS
from douban_pipeline.feeds.clients.lists import JSON_FIELDS
from douban_pipeline.feeds.clients.opml import read_opml
from douban_pipeline.feeds.discovery import Discovery, discover
from douban_pipeline.feeds.scheduler import stagger
from douban_pipeline.feeds.services import FeedsServices
from douban_pipeline.feeds.store import source_lists, sources
from douban_pipeline.feeds.types import Source, SourceKind, SourceState, source_id_for

MOST_AT_ONCE = 5000
"""Sources of one transaction."""
_SPREAD = 3600
FEW = 20
"""New sources that are looked at while a person waits, and polled at once."""
_WAITED = 60
"""Seconds that few new sources count as having waited: the sensor starts a run at its next tick, not after a minute."""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A source as entered by a person.

    Attributes:
        kind: rss, werss, maccms or json.
        url: Its address; empty for a public account.
        title: Its title; if empty, the source's own title is used.
        cadence: P0 to P6, in profile plan until its own is learned.
        mp_id: Id of a public account at WeRSS.
        options: For a JSON list: ``path``, and the paths of `JSON_FIELDS`.
        folder: Its folder, ``outer/inner``; if empty, a known source stays where it is.
        credential: Name of its credentials; if empty, those of a known source stay.
    """

    kind: str = SourceKind.RSS.value
    url: str = ""
    title: str = ""
    cadence: str = "P2"
    mp_id: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    credential: str = ""


@dataclass(slots=True)
class FollowReport:
    """Result of a request: new sources, changed ones, known ones without changes, and why others cannot be followed."""

    added: list[Source] = field(default_factory=list)
    edited: list[Source] = field(default_factory=list)
    known: list[Source] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def follow(
    services: FeedsServices, requests: Sequence[SourceRequest], *, dry_run: bool, keep_known: bool = False
) -> FollowReport:
    """Add sources, or edit those whose addresses are already followed; all or none.

    A small number of new sources is due at once; more of them within the hour, spread by their ids.

    Args:
        services: The services.
        requests: The sources.
        dry_run: If true, nothing is stored.
        keep_known: If true, sources that are already followed are not changed.

    Raises:
        ProblemsError: Some cannot be followed; one sentence for each.
    """
    problems: list[str] = []
    if len(requests) > MOST_AT_ONCE:
        message = reader_text("{most} sources at once at most; these are {count}")
        raise ProblemsError([message.format(most=MOST_AT_ONCE, count=len(requests))])
    wanted: dict[str, Source] = {}
    for number, request in enumerate(requests, 1):
        refusal = request_refusal(services, request)
        if refusal:
            named = (request.url or request.mp_id)[:100] or reader_text("empty")
            message = reader_text("no. {number} ({named}): {refusal}")
            problems.append(message.format(number=number, named=named, refusal=refusal))
            continue
        source = _source(services, request)
        wanted.setdefault(source.source_id, source)
    if not requests:
        problems.append(reader_text("no source is given"))
    if problems:
        raise ProblemsError(problems)
    now = services.now()

    def store(connection: Connection) -> FollowReport:
        report = _compare(connection, wanted, keep_known=keep_known)
        if not dry_run:
            few = len(report.added) <= FEW
            ids = [each.source_id for each in report.added]
            due_at = dict.fromkeys(ids, now - _WAITED) if few else stagger(ids, now, _SPREAD)
            sources.insert_sources(connection, report.added, due_at, now)
            for each in report.edited:
                sources.edit_source(connection, each, now)
        return report

    if dry_run:
        with reading(services.engine) as connection:
            return store(connection)
    return run_transaction(services.engine, store)


def import_opml(services: FeedsServices, text: str, *, dry_run: bool) -> FollowReport:
    """Follow the feeds of an OPML file, in their folders; known ones are not changed.

    Feeds that cannot be followed are reported, and the others taken.

    Raises:
        ProblemsError: It is not OPML, or none of its feeds can be followed.
    """
    outlines = read_opml(text)
    report = FollowReport()
    usable: list[SourceRequest] = []
    for each in outlines:
        request = SourceRequest(url=each.url, title=each.title, folder=each.folder)
        refusal = request_refusal(services, request)
        if refusal:
            report.refused.append(f"{each.title or each.url[:100]}{reader_text(': ')}{refusal}")
        else:
            usable.append(request)
    if not usable:
        raise ProblemsError(report.refused or [reader_text("the OPML has no feeds (xmlUrl of an outline)")])
    for start in range(0, len(usable), MOST_AT_ONCE):
        some = usable[start : start + MOST_AT_ONCE]
        done = follow(services, some, dry_run=dry_run, keep_known=True)
        report.added += done.added
        report.known += done.known
    return report


def set_paused(
    services: FeedsServices, given: Sequence[str], *, paused: bool, reason: str, dry_run: bool
) -> list[Source]:
    """Pause or resume sources; return them.

    Raises:
        ProblemsError: One does not exist.
    """
    now = services.now()

    def change(connection: Connection) -> list[Source]:
        found = named_sources(connection, given)
        state = SourceState.PAUSED if paused else SourceState.ACTIVE
        for each in [] if dry_run else found:
            sources.set_state(connection, each.source_id, state, reason if paused else "", now)
        return found

    return run_transaction(services.engine, change)


def remove(services: FeedsServices, given: Sequence[str]) -> None:
    """Stop following sources, and delete them with their entries, polls and statistics.

    Raises:
        ProblemsError: One does not exist; nothing was deleted.
    """
    with reading(services.engine) as connection:
        found = named_sources(connection, given)
    for each in found:
        source_lists.remove(services.engine, each.source_id)


def set_address(services: FeedsServices, given: str, url: str) -> tuple[Source, Source]:
    """Give a source another address, and poll it there at once; return it as it was and as it is.

    Its id and with it its entries and statistics stay.

    Raises:
        ProblemsError: There is no such source, the address is none, or another source has it.
    """
    now, url = services.now(), url.strip()

    def change(connection: Connection) -> tuple[Source, Source]:
        [before] = named_sources(connection, [given])
        if before.kind is SourceKind.WERSS:
            message = reader_text("a public account has no address: it is read through WeRSS ({setting})")
            raise ProblemsError([message.format(setting="DOUBAN_PIPELINE_WERSS_URL")])
        refusal = _address_refusal(services, url)
        if refusal:
            raise ProblemsError([f"{url[:100] or reader_text('empty')}{reader_text(': ')}{refusal}"])
        after = replace(before, url=url, etag="", last_modified="", body_hash="")
        other = sources.at_address(connection, before.kind, [sources.address_hash(after)])
        for each in other.values():
            if each.source_id != before.source_id:
                message = reader_text("{url} is the address of another source: {title}")
                raise ProblemsError([message.format(url=url[:100], title=each.title or each.source_id)])
        if url != before.url:
            sources.move_source(connection, before, url, now)
            # What the former address answered says nothing of this one.
            sources.update_source(connection, before.source_id, {"etag": "", "last_modified": "", "body_hash": ""}, now)
            sources.set_state(connection, before.source_id, SourceState.ACTIVE, "", now)
        return before, after

    return run_transaction(services.engine, change)


def named_sources(connection: Connection, given: Sequence[str]) -> list[Source]:
    """Return the sources named by id, address, title or prefix of an id.

    Raises:
        ProblemsError: A name matches no source, or several.
    """
    found = {name: sources.find_source(connection, name.strip()) for name in given}
    message = reader_text("no source, or more than one, is called {name}")
    missing = [message.format(name=name[:100]) for name, each in found.items() if each is None]
    if missing or not given:
        raise ProblemsError(missing or [reader_text("no source is given")])
    return [each for each in found.values() if each is not None]


def find_feed(services: FeedsServices, request: SourceRequest) -> tuple[SourceRequest, Discovery]:
    """Return a request for the feed behind the address of another: of a page, the first feed it links to.

    What does not answer, or is no feed's kind, stays as it is given.
    """
    if request.kind != SourceKind.RSS.value or request_refusal(services, request):
        return request, Discovery()
    found = discover(services, request.url.strip(), request.credential.strip())
    return (replace(request, url=found.feeds[0].url) if found.feeds else request), found


def request_refusal(services: FeedsServices, request: SourceRequest) -> str | None:
    """Return why a source cannot be followed, or None if it can."""
    if request.kind not in {each.value for each in SourceKind}:
        kinds = ", ".join(each.value for each in SourceKind)
        return reader_text("no kind of source is {kind}; there are {kinds}").format(kind=request.kind[:30], kinds=kinds)
    if request.cadence not in RSS_CADENCE_INTERVALS:
        return reader_text("cadence is P0 to P6, not {given}").format(given=request.cadence[:20])
    if request.credential and request.kind == SourceKind.WERSS.value:
        return reader_text("a public account is read with the login of WeRSS, and takes no credential")
    unknown = sorted(set(request.options) - {"path", *JSON_FIELDS})
    if unknown:
        message = reader_text("unknown in options: {unknown}; there are path, {known}")
        return message.format(unknown=", ".join(unknown)[:100], known=", ".join(JSON_FIELDS))
    if request.kind == SourceKind.WERSS.value:
        if not services.settings.werss_url:
            message = reader_text("a public account needs WeRSS: set {setting} first")
            return message.format(setting="DOUBAN_PIPELINE_WERSS_URL")
        return None if request.mp_id.strip() else reader_text("a public account needs its mp_id")
    return _address_refusal(services, request.url.strip())


def _address_refusal(services: FeedsServices, url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port_is_one = parts.port is None or parts.port > 0
    except ValueError:
        return reader_text("this is no web address")
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_one or len(url) > 4000:
        return reader_text("an address begins with http:// or https://, and has 4,000 characters at most")
    if parts.username or parts.password:
        return reader_text("no user and password in an address: it is shown on pages and in logs")
    if services.settings.allow_private:
        return None
    return _private_refusal(url)


def _private_refusal(url: str) -> str | None:
    # Only the address itself is checked: names are resolved at every poll.
    import httpx

    host = urlsplit(url).hostname or ""
    literal = host == "localhost" or host.replace(".", "").isdigit() or ":" in host
    if not literal:
        return None
    try:
        admission("", allow_private=False)(httpx.URL(url), None)
    except PrivateAddress:
        message = reader_text("a private or local address; if it is meant, set {setting}")
        return message.format(setting="DOUBAN_PIPELINE_FEEDS_ALLOW_PRIVATE=true")
    except SourceError:
        return reader_text("the address cannot be resolved")
    return None


def _source(services: FeedsServices, request: SourceRequest) -> Source:
    kind = SourceKind(request.kind)
    account = request.mp_id.strip()
    url = services.settings.werss_url if kind is SourceKind.WERSS else request.url.strip()
    options: dict[str, Any] = dict(request.options) if kind is SourceKind.JSON else {}
    if kind is SourceKind.WERSS:
        options["mp_id"] = account
    return Source(
        source_id_for(kind, url, account if kind is SourceKind.WERSS else ""),
        kind,
        url,
        title=request.title.strip()[:300],
        options=options,
        manual_cadence=request.cadence,
        folder=folder_name(request.folder),
        credential=request.credential.strip(),
    )


def folder_name(given: str) -> str:
    """Return a folder's name as stored: its parts without blanks around them, at most 200 characters."""
    return "/".join(part for part in (" ".join(each.split()) for each in given.split("/")) if part)[:200]


def _compare(connection: Connection, wanted: Mapping[str, Source], *, keep_known: bool) -> FollowReport:
    report = FollowReport()
    by_hash = {sources.address_hash(each): each for each in wanted.values()}
    known: dict[str, Source] = {}
    for kind in {each.kind for each in wanted.values()}:
        known |= sources.at_address(connection, kind, [*by_hash])
    for hashed, each in by_hash.items():
        before = known.get(hashed)
        if before is None or before.kind is not each.kind:
            report.added.append(each)
            continue
        if keep_known:
            report.known.append(before)
            continue
        after = replace(
            before,
            title=each.title or before.title,
            options=each.options or before.options,
            manual_cadence=each.manual_cadence,
            folder=each.folder or before.folder,
            credential=each.credential or before.credential,
        )
        (report.known if after == before else report.edited).append(after)
    return report
