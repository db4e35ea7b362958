"""The commands ``tmdb …``: setup, loading recorded answers, syncing and querying the graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from douban_pipeline.core.check_results import print_results
from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.console import console, plain
from douban_pipeline.core.errors import NotFound, ProblemsError, SourceError
from douban_pipeline.core.files import replaced
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.tmdb_attribution import attribution_line
from douban_pipeline.tmdb import kept_servers
from douban_pipeline.tmdb.answers import language_of
from douban_pipeline.tmdb.diagnosis import check_graph, check_kept, check_store
from douban_pipeline.tmdb.enrichment.factory import check_service, open_spool
from douban_pipeline.tmdb.graph import questions
from douban_pipeline.tmdb.graph.picture import picture_of
from douban_pipeline.tmdb.graph.questions import GraphQuestion
from douban_pipeline.tmdb.graph_sync import GraphUnavailableError, SyncReport, drain, rebuild_graph
from douban_pipeline.tmdb.recorded_answers import UNREADABLE, Loaded, LoadReport, load, read_lines
from douban_pipeline.tmdb.refresh import ARCHIVE_DAYS, OUTBOX_DAYS, REQUEST_DAYS, expiry
from douban_pipeline.tmdb.services import (
    open_client,
    open_graph,
    open_store,
    prune_archive,
)
from douban_pipeline.tmdb.settings import TmdbSettings, load_settings
from douban_pipeline.tmdb.store import by_name, outbox
from douban_pipeline.tmdb.store.entities import EntityWriter
from douban_pipeline.tmdb.store.expired_facts import ANSWERS
from douban_pipeline.tmdb.store.exports import store_export
from douban_pipeline.tmdb.store.migrations import TREE
from douban_pipeline.tmdb.types import EntityKey, EntityType
from douban_pipeline.tmdb.values import id_of


def set_up(*, dry_run: bool, graph: bool) -> None:
    """Create or upgrade the schema and the graph's constraints, or print the SQL."""
    settings = load_settings()
    with open_store(settings) as store:
        if dry_run:
            engine = store.engine()
            plan = TREE.plan(engine)
            engine.dispose()
            done = terminal_text("-- nothing to do: at version {after}").format(after=plan.after)
            plain(plan.sql if plan.before != plan.after else done)
            return
        before, after = store.upgrade()
        shown = store.url.render_as_string(hide_password=True)
    line = terminal_text("schema tmdb in {shown}: version {before} → {after}").format(
        shown=shown, before=before or terminal_text("none"), after=after
    )
    console.print(line, highlight=False, soft_wrap=True)
    if graph:
        with open_graph(settings) as target:
            target.set_up()
            line = terminal_text("graph at {uri}: constraints and indexes are there").format(uri=target.uri)
            console.print(line, highlight=False, soft_wrap=True)


def check(*, graph: bool, as_json: bool) -> bool:
    """Print the results of the checks; return whether none failed."""
    settings = load_settings()
    with open_store(settings) as store:
        found = list(check_store(store, settings, SystemClock()))
    spool = open_spool(settings)
    found += check_service(settings, spool)
    spool.close()
    if graph:
        with open_graph(settings) as target:
            found += check_graph(target)
    found += check_kept(settings)
    if as_json:
        plain(json.dumps([result.to_json() for result in found], ensure_ascii=False, indent=1))
    else:
        print_results(found)
    return all(result.state != "fail" for result in found)


def load_files(files: Sequence[Path], *, as_json: bool) -> bool:
    """Load files and print the result for each answer; return whether every line could be read."""
    report = LoadReport()
    with open_store(load_settings()) as store:
        store.ready()
        for loaded in load(store, files, SystemClock()):
            report.lines.append(loaded)
            if not as_json:
                plain(_line(loaded))
    if as_json:
        lines = [loaded.to_json() for loaded in report.lines]
        entities = [line for line in lines if line["change"] or line["entity_type"]]
        others = [line for line in lines if not line["change"] and not line["entity_type"]]
        shown = {"entities": entities, "others": others, "summary": report.summary}
        plain(json.dumps(shown, ensure_ascii=False, indent=1))
    else:
        console.print(
            ", ".join(f"{count} {what}" for what, count in report.summary.items()) or terminal_text("nothing to load")
        )
    return report.unreadable == 0


def _line(loaded: Loaded) -> str:
    what = str(loaded.entity) if loaded.entity else loaded.request or loaded.place
    outcome = loaded.change.value if loaded.change else loaded.meaning
    note = f"  ({loaded.place}: {loaded.note})" if loaded.meaning == UNREADABLE else f"  ({loaded.note})"
    return f"{what}: {outcome}{note if loaded.note else ''}"


def load_ids(entity: EntityType, file: Path | None, day: date | None) -> None:
    """Load a list of ids from a file, or TMDB's list of a day."""
    if (file is None) == (day is None):
        raise ProblemsError([terminal_text("give either a file or --day")])
    settings = load_settings()
    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings)).ready()
        if file is not None:
            lines: Iterator[bytes] = (line for _, line in read_lines(file))
        else:
            assert day is not None
            lines = stack.enter_context(open_client(settings, store)).exported_ids(entity, day)
        try:
            report = store_export(store, entity, lines)
        except SourceError as error:
            raise ProblemsError([str(error)]) from error
    console.print(
        terminal_text("{new} new stubs, {known} known already, {unreadable} lines unreadable").format(
            new=report.new, known=report.known, unreadable=report.unreadable
        )
    )


def fetch(entities: Sequence[str], *, language: str) -> bool:
    """Fetch entities from TMDB and store them; return whether all could be fetched."""
    keys = [_key(text) for text in entities]
    if language and language_of(language) is None:
        raise ProblemsError([terminal_text("{language!r} is no language such as zh-CN").format(language=language)])
    settings, well = load_settings(), True
    with open_store(settings) as store, open_client(settings, store) as client:
        for key in keys:
            try:
                [stored] = store.persist_payloads([client.details(key, language=language or None)])
            except NotFound:
                gone = store.write(partial(EntityWriter.gone, key=key))
                noted = terminal_text(", noted") if gone else ""
                plain(terminal_text("{key}: TMDB does not have it").format(key=key) + noted)
                well = False
            except SourceError as error:
                plain(f"{key}: {error}")
                well = False
            else:
                beside = terminal_text("  (beside the base row)")
                plain(f"{key}: {stored.change.value}" + ("" if stored.full else beside))
    return well


def _key(text: str) -> EntityKey:
    kind, _, number = text.strip().strip("/").partition("/")
    found = EntityType(kind) if kind in list(EntityType) else None
    tmdb_id = id_of(int(number)) if number.isascii() and number.isdecimal() and len(number) < 11 else None
    if found is None or tmdb_id is None:
        short = repr(text[:40])
        raise ProblemsError(
            [terminal_text("{short} is no entity; write it as movie/603, tv/1396 or person/62").format(short=short)]
        )
    return EntityKey(found, tmdb_id)


def sync(*, seconds: float | None) -> bool:
    """Write changes to the graph; return whether all could be written."""
    settings = load_settings()
    with open_store(settings) as store, open_graph(settings) as target:
        store.ready()
        target.set_up()
        try:
            report = drain(
                store,
                target,
                lease_seconds=settings.outbox_lease_seconds,
                seconds=seconds,
            )
        except GraphUnavailableError as error:
            later = terminal_text("; nothing is lost, run it again later")
            raise ProblemsError([f"{error}{later}"]) from error
        left = store.run(outbox.counts)
    _print_sync(report)
    console.print(
        terminal_text("{waiting} still queued, {dead} put aside").format(waiting=left.waiting, dead=left.dead)
    )
    return not report.failed


def _print_sync(report: SyncReport) -> None:
    written = report.written
    console.print(
        terminal_text(
            "{done} entities written: {merged} edges new or changed, {deleted} deleted, "
            "{nodes_deleted} nodes without edges deleted"
        ).format(done=report.done, merged=written.merged, deleted=written.deleted, nodes_deleted=written.nodes_deleted)
    )
    for key, reason in report.failed.items():
        plain(terminal_text("  {key} could not be written: {reason}").format(key=key, reason=reason))


def rebuild(*, dry_run: bool) -> None:
    """Rebuild the graph, or print how much would be written."""
    settings = load_settings()
    with open_store(settings) as store:
        store.ready()
        total = sum(found.full for found in store.row_counts().values())
        if dry_run:
            console.print(
                terminal_text(
                    "would empty the graph and build it from {total} answers; add --no-dry-run to do it"
                ).format(total=total)
            )
            return
        with open_graph(settings) as target:
            done = rebuild_graph(store, target)
            counts = {name: count for name, count in target.counts().items() if count}
    console.print(
        terminal_text("built from {done} answers: ").format(done=done)
        + ", ".join(f"{name} {count}" for name, count in counts.items())
    )


def stop() -> None:
    """Stop the servers in HOME."""
    stopped = kept_servers.stop(load_settings().home)
    names = ", ".join(stopped) or terminal_text("none ran")
    console.print(terminal_text("stopped in HOME: {names}").format(names=names))


def requeue() -> None:
    """Requeue the changes that were set aside."""
    with open_store(load_settings()) as store:
        done = store.ready().run(outbox.requeue_dead)
    console.print(terminal_text("{done} queued again; `douban-pipeline tmdb sync` writes them").format(done=done))


def prune(*, dry_run: bool) -> None:
    """Delete expired data, or print the cut-off dates."""
    settings, now = load_settings(), SystemClock().now()
    requests, done, archived = (now - timedelta(days=days) for days in (REQUEST_DAYS, OUTBOX_DAYS, ARCHIVE_DAYS))
    facts = expiry(now)
    if dry_run:
        console.print(
            terminal_text(
                "would delete questions from before {requests:%F}, rows of the outbox done before "
                "{done:%F}, empty every column of facts that TMDB gave before {facts:%F} (ids and "
                "our own links stay), and drop archived answers seen before {archived:%F} last; "
                "--no-dry-run does it"
            ).format(requests=requests, done=done, facts=facts, archived=archived)
        )
        return
    with open_store(settings) as store:
        store.ready()
        questions_gone, rows_gone = store.delete_requests(requests), store.prune_outbox(done)
        emptied, archived_gone = store.expire(facts), prune_archive(settings, store, archived)
        stubs = sum(count for place, count in emptied.items() if place.what == ANSWERS)
        others = sum(emptied.values()) - stubs
        console.print(
            terminal_text(
                "{questions_gone} questions and {rows_gone} rows of the outbox deleted, {stubs} "
                "answers became stubs with nothing but ids, {others} other rows lost facts of TMDB, "
                "{archived_gone} archived ones deleted"
            ).format(
                questions_gone=questions_gone,
                rows_gone=rows_gone,
                stubs=stubs,
                others=others,
                archived_gone=archived_gone,
            )
        )
        if store.run(outbox.counts).waiting:
            command = "`douban-pipeline tmdb sync`"
            console.print(
                terminal_text("{command} removes from the graph what expired").format(command=command), highlight=False
            )


def ask(question: str, names: tuple[str, ...], *, most: int, picture: Path | None, force: bool, as_json: bool) -> None:
    """Run one of the graph queries, print the answer, and draw it into a file if one is named."""
    found = questions.QUESTIONS.get(question)
    if found is None:
        known = ", ".join(questions.QUESTIONS)
        raise ProblemsError(
            [terminal_text("no question {question!r}; there are {known}").format(question=question, known=known)]
        )
    if picture is not None and (refusal := _picture_refusal(picture, force)):
        raise ProblemsError([refusal])
    settings = load_settings()
    names = _stored_names(settings, found, names)
    with open_graph(settings) as target:
        try:
            rows = questions.ask(target, found, names, most)
        except ValueError as error:
            raise ProblemsError([str(error)]) from error
    asked = found.asks.format(**dict(zip(found.names, names, strict=True)))
    if picture is not None and rows:
        with replaced(picture) as part:
            part.write_text(picture_of(asked, names, rows), "utf-8")
    if as_json:
        plain(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    if not rows:
        console.print(
            terminal_text("no answer: the graph does not have it, or `douban-pipeline tmdb sync` has not run")
        )
        return
    plain(asked)
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*(" — ".join(map(str, each)) if isinstance(each, list) else str(each) for each in row.values()))
    console.print(table)
    if picture is not None:
        plain(terminal_text("drawn into {file}").format(file=picture))
    plain(attribution_line())


def _picture_refusal(file: Path, force: bool) -> str | None:
    """Return why nothing can be drawn into a file, or None."""
    if file.suffix.lower() != ".svg":
        return terminal_text("{file}: pictures are SVG files; name it with .svg at the end").format(file=file)
    if not file.parent.is_dir():
        return terminal_text("{file}: there is no such folder").format(file=file)
    if file.exists() and not force:
        return terminal_text("{file} exists: name another file, or add --force to replace it").format(file=file)
    return None


def _stored_names(settings: TmdbSettings, question: GraphQuestion, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return names as the graph has them, for how they begin, or other names; as given where the store has none."""
    found = []
    with open_store(settings) as store, store.ready().transaction() as connection:
        for parameter, words in zip(question.names, given, strict=False):
            wants_title = parameter == "title"
            stored = [
                each
                for each in by_name.by_beginning(connection, words, 1)
                if (each.key.type is EntityType.PERSON) is not wants_title
            ]
            name = stored[0].name if stored else words
            if name != words:
                plain(terminal_text("{words} is taken for {name}").format(words=words, name=name))
            found.append(name)
    return (*found, *given[len(found) :])
