"""A code location of a system whose libraries are not installed: empty, and it says so."""

from __future__ import annotations

import logging

import dagster as dg

from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.system import System


def empty_location(system: System, library: str) -> dg.Definitions:
    """Return definitions without anything, whose metadata say what is missing; it is logged, too.

    One location that cannot be loaded fails ``dg check`` and every reload of the whole workspace.
    """
    sentence = f"{system.location_name}: {missing_library(library, system.name)}"
    logging.getLogger(__name__).warning(sentence)
    return dg.Definitions(metadata={"left_out": sentence})
