"""The command `douban-pipeline evaluate`: reads the rows, judges them, writes the reports, and checks the limits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.douban.evidence.adding import TitleFacts
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.quality import report_html, report_markdown
from douban_pipeline.douban.quality.added_facts import changes, facts_of_others
from douban_pipeline.douban.quality.comparison import (
    PREDICTIONS,
    Key,
    Prediction,
    RunComparison,
    compare_with,
    find_predictions,
    predictions_of,
    read_predictions,
)
from douban_pipeline.douban.quality.labelled_replay import Result, evaluate
from douban_pipeline.douban.quality.labelled_rows import CorpusSubject, GoldRow, read_corpus, read_gold
from douban_pipeline.douban.quality.local_sources import SearchKind
from douban_pipeline.douban.quality.metrics import is_headline
from douban_pipeline.douban.quality.report import EvaluationReport, Run, make_report
from douban_pipeline.douban.quality.terminal import print_changes, print_evidence, print_row, print_tables
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.matching.profiles import PROFILES, Profile

BOTH = "both"


class EvaluationError(Exception):
    """The evaluation cannot run; the message says what to change."""


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Limits; the command fails if one is not met.

    Attributes:
        most_wrong: Maximum number of wrong links, over all rows.
        least_coverage: Minimum linked share of the headline sources' rows.
        most_wrong_hidden: Maximum number of links of rows whose true subject is removed from the index.
    """

    most_wrong: int | None = None
    least_coverage: float | None = None
    most_wrong_hidden: int | None = None


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """What to evaluate and where to write it.

    Attributes:
        corpus: The file of subjects.
        gold: Files of labelled rows.
        profiles: Profiles to judge with.
        out: Folder of the reports.
        against: Earlier reports, or predictions, to compare with.
        limit: Maximum number of rows read from each gold file; None reads all.
        hide_truth: Whether headline rows are judged a second time with their true subject removed from the index.
        search: Kind of search for candidates.
        limits: The limits.
        index: File of known subjects, written by `douban-pipeline index load`; None for none.
        evidence: Whether the curve, the remaining reasons and every wrong link are also printed.
        row: The only row to judge, as FILE:LINE; its evidence is printed, and no file is written.
        as_json: Whether evidence is printed as JSON, and nothing else is.
        added_facts: Whether rows are judged a second time with facts of another source's row of the same work added, as
            TMDB's are to videos; what that changes is printed.
    """

    corpus: Path
    gold: Sequence[Path]
    profiles: Sequence[Profile]
    out: Path
    against: Path | None = None
    limit: int | None = None
    hide_truth: bool = True
    search: SearchKind = SearchKind.SUGGESTIONS
    limits: EvaluationLimits = field(default_factory=EvaluationLimits)
    index: Path | None = None
    evidence: bool = False
    row: str | None = None
    as_json: bool = False
    added_facts: bool = False


def search_kind(name: str) -> SearchKind:
    """Return the kind of search of that name.

    Raises:
        EvaluationError: There is no such kind.
    """
    try:
        return SearchKind(name)
    except ValueError:
        raise EvaluationError(f"there is no search {name!r}: give {', '.join(SearchKind)}") from None


def profile_names(given: Sequence[str], default: str) -> tuple[str, ...]:
    """Return the requested profiles, each once; ``both`` means all of them.

    Raises:
        EvaluationError: There is no profile of that name.
    """
    names = [name for each in given or (default,) for name in (PROFILES if each == BOTH else (each,))]
    for name in names:
        if name not in PROFILES:
            raise EvaluationError(f"there is no profile {name!r}: give {', '.join(PROFILES)} or {BOTH}")
    return tuple(dict.fromkeys(names))


def evaluate_by_settings(
    corpus: Path,
    gold: Sequence[Path],
    console: Console,
    *,
    profiles: Sequence[str],
    out: Path | None,
    against: Path | None,
    limit: int | None,
    hide_truth: bool,
    search: SearchKind,
    limits: EvaluationLimits,
    index: Path | None = None,
    evidence: bool = False,
    row: str | None = None,
    as_json: bool = False,
    added_facts: bool = False,
) -> bool:
    """Evaluate with the weights and thresholds of the settings; see `run`.

    Args:
        corpus, gold, against, limit, hide_truth, search, limits, index: See `EvaluationRequest`.
        evidence, row, as_json, added_facts: See `EvaluationRequest`.
        out: Folder of the reports; by default one in HOME.
        console: Where to print.
        profiles: As given on the command line, see `profile_names`.
    """
    settings = load_settings()
    names = profile_names(profiles, settings.match_profile)
    request = EvaluationRequest(
        corpus=corpus,
        gold=gold,
        profiles=[profile_of(settings.model_copy(update={"match_profile": name})) for name in names],
        out=out or settings.home / "evaluation",
        against=against,
        limit=limit,
        hide_truth=hide_truth,
        search=search,
        limits=limits,
        index=index,
        evidence=evidence,
        row=row,
        as_json=as_json,
        added_facts=added_facts,
    )
    return run(request, console, SystemClock())


def run(request: EvaluationRequest, console: Console, clock: Clock) -> bool:
    """Evaluate, write the reports, print them on the terminal, and return whether the limits were met.

    Nothing is written before everything is computed, so that an interrupted run leaves the earlier report unchanged.

    Raises:
        FormatError: A file cannot be read.
        EvaluationError: There is nothing to evaluate, or the folder cannot be written.
    """
    earlier = _read_earlier(request)
    known = _open_index(request.index)
    corpus = read_corpus(request.corpus)
    rows = _read_rows(request)
    if not corpus:
        raise EvaluationError(f"{request.corpus} holds no subject: give the corpus the gold rows were labelled with")
    if not rows:
        raise EvaluationError(f"there is no row in {', '.join(map(str, request.gold))}: nothing can be measured")
    if request.row is not None:
        _judge_row(request, corpus, _row(rows, request.row), known, console)
        return True
    run_of = Run(
        corpus_name=request.corpus.name,
        subjects=len(corpus),
        files=Counter(row.file for row in rows),
        truths_not_in_corpus=sum(row.expected is not None and row.expected not in corpus for row in rows),
        made_at=clock.now(),
        search=request.search,
    )
    facts = facts_of_others(rows) if request.added_facts else {}
    reports, changed = [], []
    for profile in request.profiles:
        results = _judge(corpus, rows, profile, console, search=request.search, known=known)
        comparison = None
        if profile.name in earlier:
            comparison = compare_with(earlier[profile.name], results, str(request.against))
        if facts:
            known_more = _judge(corpus, rows, profile, console, search=request.search, known=known, facts=facts)
            changed.append(changes(results, known_more, facts))
        hidden = _judge_hidden(corpus, rows, profile, console, request.search, known) if request.hide_truth else []
        reports.append(make_report(run_of, profile, results, comparison, hidden))
    _write(request.out, _files(reports))
    if not request.as_json:
        print_tables(reports, console)
        if request.added_facts:
            print_changes([profile.name for profile in request.profiles], changed, console)
        console.print(f"reports    {escape(str(request.out))}", highlight=False, soft_wrap=True)
    if request.evidence or request.as_json:
        print_evidence(reports, corpus, request.as_json, console)
    return _within_limits(reports, request.limits, console)


def _read_earlier(request: EvaluationRequest) -> dict[str, Mapping[Key, Prediction]]:
    if request.against is None:
        return {}
    names = [profile.name for profile in request.profiles]
    return {name: read_predictions(find_predictions(request.against, name)) for name in names}


def _open_index(path: Path | None) -> KnownSubjects | None:
    if path is None:
        return None
    # Imported here because few evaluations need it, and it imports numpy.
    from douban_pipeline.douban.known_subjects.name_index import IndexUnusable, NameIndex

    try:
        return KnownSubjects((NameIndex(path),))
    except FileNotFoundError:
        raise EvaluationError(f"there is no index {path}: make one with `douban-pipeline index load FILE`") from None
    except IndexUnusable as error:
        raise EvaluationError(str(error)) from None


def _read_rows(request: EvaluationRequest) -> list[GoldRow]:
    names = Counter(path.name for path in request.gold)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        # Predictions name a row by its file's base name and line.
        raise EvaluationError(
            f"two gold files are called {twice[0]}: rename one, their rows could not be distinguished"
        )
    return [row for path in request.gold for row in read_gold(path)[: request.limit]]


def _row(rows: Sequence[GoldRow], name: str) -> GoldRow:
    """Return the row of that name, FILE:LINE.

    Raises:
        EvaluationError: There is no such row.
    """
    found = next((row for row in rows if f"{row.file}:{row.row}" == name), None)
    if found is None:
        raise EvaluationError(f"there is no row {name!r}: give FILE:LINE, with the file's name as --gold has it")
    return found


def _judge_row(
    request: EvaluationRequest,
    corpus: Mapping[int, CorpusSubject],
    row: GoldRow,
    known: KnownSubjects | None,
    console: Console,
) -> None:
    without = (False, True) if request.hide_truth and row.expected is not None else (False,)
    for profile in request.profiles:
        judged = [
            result
            for hide in without
            for result in evaluate(corpus, [row], profile, hide_truth=hide, search_kind=request.search, known=known)
        ]
        print_row(judged, corpus, row.expected, request.as_json, console)


def _judge_hidden(
    corpus: Mapping[int, CorpusSubject],
    rows: Sequence[GoldRow],
    profile: Profile,
    console: Console,
    search: SearchKind,
    known: KnownSubjects | None,
) -> list[Result]:
    headline = [row for row in rows if is_headline(row)]
    return _judge(corpus, headline, profile, console, search=search, known=known, hide_truth=True)


def _judge(
    corpus: Mapping[int, CorpusSubject],
    rows: Sequence[GoldRow],
    profile: Profile,
    console: Console,
    *,
    search: SearchKind,
    known: KnownSubjects | None,
    hide_truth: bool = False,
    facts: Mapping[tuple[str, int], TitleFacts] | None = None,
) -> list[Result]:
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        kind = ", truth taken out" if hide_truth else ", facts added" if facts else ""
        task = progress.add_task(f"{profile.name}{kind}", total=len(rows))
        return evaluate(
            corpus,
            rows,
            profile,
            hide_truth=hide_truth,
            search_kind=search,
            known=known,
            facts=facts,
            on_progress=lambda: progress.advance(task),
        )


def _files(reports: Sequence[EvaluationReport]) -> dict[str, str]:
    """Return the text of every file by its path in the folder; with several profiles, each has its own folder."""
    files = {}
    for report in reports:
        folder = f"{report.profile.name}/" if len(reports) > 1 else ""
        rows = (json.dumps(result.to_json(), ensure_ascii=False) for result in report.results)
        files[folder + PREDICTIONS] = "".join(f"{row}\n" for row in rows)
        files[folder + "report.md"] = report_markdown.render(report)
        files[folder + "report.html"] = report_html.render(report)
    if len(reports) > 1:
        difference = _difference(reports)
        files["summary.md"] = report_markdown.render_summary(reports, difference)
        files["summary.html"] = report_html.render_summary(reports, difference)
    return files


def _difference(reports: Sequence[EvaluationReport]) -> RunComparison:
    first, last = reports[0], reports[-1]
    return compare_with(predictions_of(first.results), last.results, first.profile.name)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    written: dict[Path, Path] = {}
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.partial")
            written[partial] = path
            partial.write_text(text, encoding="utf-8")
        for partial, path in written.items():
            partial.replace(path)
    except OSError as error:
        reason = f"{error.filename or folder} cannot be written: {error.strerror}"
        raise EvaluationError(f"{reason}; name another folder with --out") from None
    finally:
        for partial in written:
            partial.unlink(missing_ok=True)


def _within_limits(reports: Sequence[EvaluationReport], limits: EvaluationLimits, console: Console) -> bool:
    broken = [f"{report.profile.name}: {text}" for report in reports for text in _broken(report, limits)]
    for text in broken:
        console.print(f"[red]limit not met:[/red] {text}", highlight=False, soft_wrap=True)
    return not broken


def _broken(report: EvaluationReport, limits: EvaluationLimits) -> list[str]:
    lines = []
    if limits.most_wrong is not None and len(report.wrong) > limits.most_wrong:
        lines.append(f"{len(report.wrong)} wrong links, and at most {limits.most_wrong} are allowed")
    if limits.most_wrong_hidden is not None and len(report.wrong_hidden) > limits.most_wrong_hidden:
        lines.append(
            f"{len(report.wrong_hidden)} links of rows whose true subject was taken out, and at most "
            f"{limits.most_wrong_hidden} are allowed"
        )
    if limits.least_coverage is not None:
        coverage = report.headline.linked.share if report.headline else None
        if coverage is None:
            lines.append("there is no row of a headline source, so coverage is unknown")
        elif coverage < limits.least_coverage:
            # Three decimals, so that a share just below the limit is not printed as equal to it.
            lines.append(
                f"coverage of the headline sources is {100 * coverage:.3f} %, and at least "
                f"{100 * limits.least_coverage:g} % is required"
            )
    return lines
