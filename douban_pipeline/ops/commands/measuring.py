"""Measuring the matcher on labelled records."""

from pathlib import Path
from typing import Annotated

import typer

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.douban.chain.linking.guards import profile_of
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.evaluation.command import Limits, Request, profile_names
from douban_pipeline.evaluation.command import run as run_evaluation
from douban_pipeline.ops.commands.output import console


def evaluate_matcher(
    corpus: Annotated[Path, typer.Option(help="Subjects, one JSON object a line.")],
    gold: Annotated[list[Path], typer.Option(help="Labelled rows, one JSON object a line; several may follow.")],
    more: Annotated[list[Path] | None, typer.Argument(metavar="[GOLD]...", help="More files of labelled rows.")] = None,
    profile: Annotated[
        list[str] | None, typer.Option(help="plan, calibrated or both; may be repeated. Default: the setting's.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the reports. Default: evaluation, in the folder of the setting home.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="An earlier report's folder, or its predictions.jsonl, to compare with.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first rows of each gold file.")] = None,
    hide_truth: Annotated[
        bool, typer.Option(help="Judge headline rows once more with their true subject taken out of the index.")
    ] = True,
    most_wrong: Annotated[
        int | None, typer.Option(min=0, help="Exit with 1 if there are more wrong links, over all rows.")
    ] = None,
    least_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if a smaller share of the headline sources is linked."),
    ] = None,
) -> None:
    """Measure the matcher on labelled records: wrong links, coverage, reviews, requests; write a report of it."""
    settings = load_settings()
    names = profile_names(profile or (), settings.match_profile)
    request = Request(
        corpus=corpus,
        gold=[*gold, *(more or ())],
        profiles=[profile_of(settings.model_copy(update={"match_profile": name})) for name in names],
        out=out or settings.home / "evaluation",
        against=against,
        limit=limit,
        hide_truth=hide_truth,
        limits=Limits(most_wrong, least_coverage),
    )
    try:
        kept = run_evaluation(request, console, SystemClock())
    except KeyboardInterrupt:
        console.print("stopped; no report was written or changed")
        raise typer.Exit(130) from None
    if not kept:
        raise typer.Exit(1)
