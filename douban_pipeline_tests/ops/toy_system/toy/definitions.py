"""The toy's code location."""

import dagster as dg


@dg.asset
def toy_notes() -> None:
    """The notes."""


def build_defs() -> dg.Definitions:
    """Return the code location."""
    return dg.Definitions(assets=[toy_notes])
