"""Tables and plots as metadata, in the form that the page has room for which shows them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.presentation import MOST_ROWS, as_image, panel


def shown_table(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS) -> dg.MarkdownMetadataValue:
    """Return rows as the page of an asset or a check shows them, see `presentation.panel`."""
    return dg.MetadataValue.md(panel(rows, most=most))


def run_table(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS) -> dg.MarkdownMetadataValue:
    """Return rows as the page of a run shows the metadata of a job's steps, which is a dialog."""
    return dg.MetadataValue.md(panel(rows, most=most, in_dialog=True))


def counts_table(
    of: str, unit: str, counts: Iterable[tuple[str, int]], *, most: int = MOST_ROWS
) -> dg.MarkdownMetadataValue:
    """Return how many ``unit`` there are of each ``of``, in the order given."""
    return shown_table([{of: name, unit: count} for name, count in counts], most=most)


def shown_plots(plots: Mapping[str, str]) -> dg.MarkdownMetadataValue:
    """Return plots (SVG by name) as pictures, a dash for none; one that is empty is left out."""
    return dg.MetadataValue.md("\n\n".join(as_image(svg, name) for name, svg in plots.items() if svg) or "—")
