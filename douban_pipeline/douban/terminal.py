"""The commands ``index …``: indexes of subjects that can be found without a request."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

import typer

from douban_pipeline.core.console import console, plain
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.presentation import local_time
from douban_pipeline.douban.known_subjects.archived import index_archived
from douban_pipeline.douban.known_subjects.known_search import (
    KnownSubjects,
    archived_index,
    loaded_index,
    open_known_subjects,
)
from douban_pipeline.douban.known_subjects.name_index import IndexContents, build
from douban_pipeline.douban.known_subjects.subject_files import FileReport, NamedSubject, SubjectFileError, subjects_in
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings

_EVERY = 50_000


def load(files: Sequence[Path], *, dry_run: bool) -> None:
    """Build the index of ``files``, or only read them; exits with 1 if there is nothing to index."""
    path = loaded_index(load_settings().home)
    reports = {str(path): FileReport() for path in files}
    if len(reports) < len(files):
        raise typer.BadParameter(terminal_text("a file is given twice"))
    counts: dict[str, int] = {}
    try:
        subjects = _each_once(reports, counts)
        total = sum(1 for _ in _some(subjects)) if dry_run else _build(path, subjects, counts)
    except (SubjectFileError, OSError, sqlite3.Error) as error:
        plain(terminal_text("nothing was loaded: {error}").format(error=error))
        raise typer.Exit(1) from error
    _print_files(reports, counts)
    if dry_run:
        plain(
            terminal_text("{total:,} subjects would be indexed: {path}; nothing was written").format(
                total=total, path=path
            )
        )
    else:
        size = path.stat().st_size / 1e6
        plain(
            terminal_text("{total:,} subjects: {path} ({size:,.1f} MB). Runs that start from now on use it.").format(
                total=total, path=path, size=size
            )
        )


def _build(path: Path, subjects: Iterator[NamedSubject], counts: dict[str, int]) -> int:
    return build(path, _some(subjects), counts).subjects


def _some(subjects: Iterator[NamedSubject]) -> Iterator[NamedSubject]:
    """Yield the subjects; an empty index is refused, so that a wrong file does not replace a good index."""
    first = next(subjects, None)
    if first is None:
        raise SubjectFileError(
            terminal_text("no row is a subject with an id and a title; the index loaded before is kept")
        )
    yield first
    yield from subjects


def _each_once(reports: dict[str, FileReport], counts: dict[str, int]) -> Iterator[NamedSubject]:
    """Yield the subjects of all files, each from the first file that has it, and report the progress."""
    seen: set[int] = set()
    for name, report in reports.items():
        counts[name] = 0
        for subject in subjects_in(Path(name), report):
            if subject.douban_id not in seen:
                seen.add(subject.douban_id)
                counts[name] += 1
                yield subject
            if report.read % _EVERY == 0:
                count = f"{report.read:,}"
                console.print(
                    terminal_text("{name}: {count} subjects …").format(name=name, count=count), highlight=False
                )


def _print_files(reports: dict[str, FileReport], counts: dict[str, int]) -> None:
    for name, report in reports.items():
        plain(
            terminal_text("{name}: {read:,} subjects, {counts:,} of them new, {refused:,} rows skipped").format(
                name=name, read=report.read, counts=counts[name], refused=report.refused
            )
        )
        for problem in report.problems:
            plain(f"  {problem}")


def index_archive() -> None:
    """Index the subjects of the archive."""
    services = open_services(load_settings()).ready()
    path = archived_index(services.settings.home)
    contents = index_archived(services.archive, path)
    subjects, names = f"{contents.subjects:,}", f"{contents.names:,}"
    plain(
        terminal_text("{subjects} subjects with {names} names: {path}").format(
            subjects=subjects, names=names, path=path
        )
    )
    services.close()


def show() -> None:
    """Print the contents of the indexes."""
    settings = load_settings()
    shown = Table(
        terminal_text("index"),
        terminal_text("subjects"),
        terminal_text("names"),
        terminal_text("made"),
        terminal_text("from"),
    )
    indexes = (
        (terminal_text("loaded"), loaded_index(settings.home)),
        (terminal_text("archive"), archived_index(settings.home)),
    )
    for name, path in indexes:
        known = open_known_subjects(path)
        contents = known.indexes[0].contents if known else None
        shown.add_row(name, *_columns(contents, settings.zone))
    console.print(shown)


def _columns(contents: IndexContents | None, zone: ZoneInfo) -> tuple[str, ...]:
    if contents is None:
        return "—", "", "", terminal_text("not made yet")
    sources = ", ".join(f"{Path(name).name} ({count:,})" for name, count in contents.sources.items())
    return f"{contents.subjects:,}", f"{contents.names:,}", local_time(contents.built_at, zone), sources


def find(title: str, year: int | None) -> None:
    """Print the known subjects with a title like ``title``."""
    home = load_settings().home
    known = open_known_subjects(loaded_index(home), archived_index(home))
    if known is None:
        plain(terminal_text("no index yet: douban-pipeline index load FILE, or index archive"))
        raise typer.Exit(1)
    _print_found(known, title, year)


def _print_found(known: KnownSubjects, title: str, year: int | None) -> None:
    shown = Table("id", terminal_text("title", "terminal"), terminal_text("year"), terminal_text("other names"))
    listed = {
        subject.douban_id: subject for index in known.indexes for subject in index.find([title], year=year, limit=20)
    }
    for subject in listed.values():
        names = (subject.original_title, *subject.names)
        shown.add_row(str(subject.douban_id), subject.title, str(subject.year or ""), " / ".join(filter(None, names)))
    console.print(shown)
