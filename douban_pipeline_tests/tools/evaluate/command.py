"""The command `make evaluate`: reads the rows, judges them, writes the reports, and checks the limits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from douban_pipeline.core.clock import Clock
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.files import replaced
from douban_pipeline.douban.evidence.added_facts import TitleFacts
from douban_pipeline.douban.known_subjects.known_search import KnownSubjects
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.settings import Settings
from douban_pipeline.matching.profiles import Profile
from douban_pipeline.matching.weights import PROFILES
from douban_pipeline_tests.tools.evaluate import report_html
from douban_pipeline_tests.tools.evaluate.comparison import (
    PREDICTIONS,
    Prediction,
    changes,
    compare_with,
    find_predictions,
    predictions_of,
    read_predictions,
)
from douban_pipeline_tests.tools.evaluate.labelled_replay import CorpusJudge, Result, facts_of_others
from douban_pipeline_tests.tools.evaluate.labelled_rows import GoldRow, Key, read_corpus, read_gold
from douban_pipeline_tests.tools.evaluate.local_sources import SearchKind
from douban_pipeline_tests.tools.evaluate.options import EvaluationOptions
from douban_pipeline_tests.tools.evaluate.report import EvaluationReport, Run, make_report
from douban_pipeline_tests.tools.evaluate.terminal import print_changes, print_evidence, print_row, print_tables

BOTH = "both"


class EvaluationError(OperatingError):
    """The evaluation cannot run; the message says what to change."""


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


@dataclass(frozen=True, slots=True)
class _Judge:
    """Judges labelled rows and shows its progress where ``console`` is a terminal."""

    against: CorpusJudge
    console: Console

    def __call__(
        self,
        rows: Sequence[GoldRow],
        profile: Profile,
        *,
        hide_truth: bool = False,
        facts: Mapping[Key, TitleFacts] | None = None,
    ) -> list[Result]:
        """Return the results of ``rows``; see `CorpusJudge.judge`."""
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        with progress:
            kind = ", truth taken out" if hide_truth else ", facts added" if facts else ""
            task = progress.add_task(f"{profile.name}{kind}", total=len(rows))
            return self.against.judge(
                rows, profile, hide_truth=hide_truth, facts=facts, on_progress=lambda: progress.advance(task)
            )


def run(options: EvaluationOptions, settings: Settings, console: Console, clock: Clock) -> bool:
    """Evaluate with the weights and thresholds of ``settings``, and report; return whether the limits were met.

    Nothing is written before everything is computed, so that an interrupted run leaves the earlier report unchanged.

    Raises:
        FormatError: A file cannot be read.
        EvaluationError: An option names nothing, there is nothing to evaluate, or the folder cannot be written.
    """
    search = search_kind(options.search)
    names = profile_names(options.profile or (), settings.match_profile)
    profiles = [profile_of(settings.model_copy(update={"match_profile": name})) for name in names]
    out = options.out or settings.home / "evaluation"
    earlier = _read_earlier(options.against, profiles)
    known = _open_index(options.index)
    corpus = read_corpus(options.corpus)
    gold = [*options.gold, *(options.more or ())]
    rows = _read_rows(gold, options.limit)
    if not corpus:
        raise EvaluationError(f"{options.corpus} holds no subject: give the corpus the gold rows were labelled with")
    if not rows:
        raise EvaluationError(f"there is no row in {', '.join(map(str, gold))}: nothing can be measured")
    judge = _Judge(CorpusJudge(corpus, search, known), console)
    if options.row is not None:
        _judge_row(options, judge, profiles, _row(rows, options.row))
        return True
    run_of = Run(
        corpus_name=options.corpus.name,
        subjects=len(corpus),
        files=Counter(row.file for row in rows),
        truths_not_in_corpus=sum(row.expected is not None and row.expected not in corpus for row in rows),
        made_at=clock.now(),
        search=search,
    )
    facts = facts_of_others(rows) if options.added_facts else {}
    headline = [row for row in rows if row.headline]
    reports, changed = [], []
    for profile in profiles:
        results = judge(rows, profile)
        comparison = None
        if profile.name in earlier:
            comparison = compare_with(earlier[profile.name], results, str(options.against))
        if facts:
            changed.append(changes(results, judge(rows, profile, facts=facts), facts))
        hidden = judge(headline, profile, hide_truth=True) if options.hide_truth else []
        reports.append(make_report(run_of, profile, results, comparison, hidden))
    _write(out, _files(reports))
    if not options.as_json:
        print_tables(reports, console)
        if options.added_facts:
            print_changes(names, changed, console)
        console.print(f"reports    {escape(str(out))}", highlight=False, soft_wrap=True)
    if options.evidence or options.as_json:
        print_evidence(reports, corpus, options.as_json, console)
    return _within_limits(reports, options, console)


def _read_earlier(against: Path | None, profiles: Sequence[Profile]) -> dict[str, Mapping[Key, Prediction]]:
    if against is None:
        return {}
    return {profile.name: read_predictions(find_predictions(against, profile.name)) for profile in profiles}


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


def _read_rows(gold: Sequence[Path], limit: int | None) -> list[GoldRow]:
    names = Counter(path.name for path in gold)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        # Predictions name a row by its file's base name and line.
        raise EvaluationError(
            f"two gold files are called {twice[0]}: rename one, their rows could not be distinguished"
        )
    return [row for path in gold for row in read_gold(path)[:limit]]


def _row(rows: Sequence[GoldRow], name: str) -> GoldRow:
    """Return the row of that name, FILE:LINE.

    Raises:
        EvaluationError: There is no such row.
    """
    found = next((row for row in rows if f"{row.file}:{row.row}" == name), None)
    if found is None:
        raise EvaluationError(f"there is no row {name!r}: give FILE:LINE, with the file's name as --gold has it")
    return found


def _judge_row(options: EvaluationOptions, judge: _Judge, profiles: Sequence[Profile], row: GoldRow) -> None:
    without = (False, True) if options.hide_truth and row.expected is not None else (False,)
    for profile in profiles:
        judged = [result for hide in without for result in judge([row], profile, hide_truth=hide)]
        print_row(judged, judge.against.corpus, row.expected, options.as_json, judge.console)


def _files(reports: Sequence[EvaluationReport]) -> dict[str, str]:
    """Return the text of every file by its path in the folder; with several profiles, each has its own folder."""
    files = {}
    for report in reports:
        folder = f"{report.profile.name}/" if len(reports) > 1 else ""
        rows = (json.dumps(result.to_json(), ensure_ascii=False) for result in report.results)
        files[folder + PREDICTIONS] = "".join(f"{row}\n" for row in rows)
        files[folder + "report.html"] = report_html.render(report)
    if len(reports) > 1:
        first, last = reports[0], reports[-1]
        difference = compare_with(predictions_of(first.results), last.results, first.profile.name)
        files["summary.html"] = report_html.render_summary(reports, difference)
    return files


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Replace the files only when all are written, so that a folder never holds parts of two reports."""
    try:
        with ExitStack() as whole:
            for name, text in files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                whole.enter_context(replaced(path)).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{error.filename or folder} cannot be written: {error.strerror}"
        raise EvaluationError(f"{reason}; name another folder with --out") from None


def _within_limits(reports: Sequence[EvaluationReport], options: EvaluationOptions, console: Console) -> bool:
    broken = [f"{report.profile.name}: {text}" for report in reports for text in options.limits_not_met(report)]
    for text in broken:
        console.print(f"[red]limit not met:[/red] {text}", highlight=False, soft_wrap=True)
    return not broken
