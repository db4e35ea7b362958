"""Tables as metadata, formatted for the page that shows them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.presentation import MOST_ROWS, panel
from douban_pipeline.core.ui.report_files import ReportFolder


def shown_table(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS) -> dg.MarkdownMetadataValue:
    """Return rows formatted for the page of an asset or a check, see `presentation.panel`."""
    return dg.MetadataValue.md(panel(rows, most=most))


def run_table(rows: Sequence[Mapping[str, Any]], *, most: int = MOST_ROWS) -> dg.MarkdownMetadataValue:
    """Return rows formatted for the page of a run, which shows a step's metadata in a dialog."""
    return dg.MetadataValue.md(panel(rows, most=most, in_dialog=True))


def counts_table(
    of: str, unit: str, counts: Iterable[tuple[str, int]], *, most: int = MOST_ROWS
) -> dg.MarkdownMetadataValue:
    """Return a table with the number of ``unit`` of each ``of``, in the order given."""
    return shown_table([{of: name, unit: count} for name, count in counts], most=most)


def shown_place(reports: ReportFolder, name: str) -> dg.MetadataValue:
    """Return where people open a report: a link if the folder is served, its path otherwise."""
    address = reports.address(name)
    return dg.MetadataValue.url(address) if reports.url else dg.MetadataValue.path(address)
