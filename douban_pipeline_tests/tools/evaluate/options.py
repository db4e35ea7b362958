"""The options of `make evaluate`, each stated once: name, help, default, and the limits that they set.

Loads fast, as help needs it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from douban_pipeline_tests.tools.evaluate.report import EvaluationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """What to evaluate, how, and where to write it; the help of each option says what it means."""

    corpus: Annotated[Path, typer.Option(help="Subjects, one JSON object per line.")]
    gold: Annotated[list[Path], typer.Option(help="Labelled rows, JSON lines or CSV; more files may follow.")]
    more: Annotated[list[Path] | None, typer.Argument(metavar="[GOLD]...", help="More files of labelled rows.")] = None
    profile: Annotated[
        list[str] | None, typer.Option(help="plan, calibrated or both; may be repeated. Default: the setting's.")
    ] = None
    out: Annotated[
        Path | None, typer.Option(help="Folder of the reports. Default: evaluation, in the folder of the setting home.")
    ] = None
    against: Annotated[
        Path | None, typer.Option(help="An earlier report's folder, or its predictions.jsonl, to compare with.")
    ] = None
    limit: Annotated[int | None, typer.Option(min=1, help="Take only the first rows of each gold file.")] = None
    hide_truth: Annotated[
        bool, typer.Option(help="Judge the headline rows again with their true subject removed from the index.")
    ] = True
    most_wrong: Annotated[
        int | None, typer.Option(min=0, help="Exit with 1 if there are more wrong links than this, over all rows.")
    ] = None
    least_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if the linked share of the headline sources is below this."),
    ] = None
    most_wrong_hidden: Annotated[
        int | None,
        typer.Option(min=0, help="Exit with 1 if more rows than this are linked with their true subject removed."),
    ] = None
    search: Annotated[
        str, typer.Option(help="suggestions: titles and years; six: the same, six a page; web: bare titles.")
    ] = "suggestions"
    index: Annotated[
        Path | None, typer.Option(help="An index of known subjects, asked before the search, as production does.")
    ] = None
    evidence: Annotated[
        bool, typer.Option(help="Print the curve, what rows that were not linked lack, and every wrong link.")
    ] = False
    row: Annotated[
        str | None, typer.Option(metavar="FILE:LINE", help="Judge one row only and print the evidence of its verdict.")
    ] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print the evidence as JSON and nothing else.")] = False
    added_facts: Annotated[
        bool, typer.Option(help="Judge again with another source's facts of the same work added, as TMDB's are.")
    ] = False

    def limits_not_met(self, report: "EvaluationReport") -> list[str]:
        """Return a sentence for each limit that a report breaks."""
        lines = []
        if self.most_wrong is not None and len(report.wrong) > self.most_wrong:
            lines.append(f"{len(report.wrong)} wrong links, and at most {self.most_wrong} are allowed")
        if self.most_wrong_hidden is not None and len(report.wrong_hidden) > self.most_wrong_hidden:
            lines.append(
                f"{len(report.wrong_hidden)} links of rows whose true subject was taken out, and at most "
                f"{self.most_wrong_hidden} are allowed"
            )
        if self.least_coverage is not None:
            coverage = report.headline.linked.share if report.headline else None
            if coverage is None:
                lines.append("there is no row of a headline source, so coverage is unknown")
            elif coverage < self.least_coverage:
                # Three decimals, so that a share just below the limit is not printed as equal to it.
                lines.append(
                    f"coverage of the headline sources is {100 * coverage:.3f} %, and at least "
                    f"{100 * self.least_coverage:g} % is required"
                )
        return lines
