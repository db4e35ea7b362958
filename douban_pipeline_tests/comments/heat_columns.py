"""Columns of a few comments for tests of heat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from douban_pipeline.comments.heat.factors import READ
from douban_pipeline.comments.heat.graph import Column, ValueKind

_USUAL: dict[str, Any] = {"length": 15, "content": "好看"}
_TYPES: dict[ValueKind, Any] = {ValueKind.NUMBER: np.float64, ValueKind.FLAG: bool, ValueKind.TEXT: object}


def columns_of(comments: Sequence[dict[str, Any]]) -> dict[str, Column]:
    """Return all columns of ``comments``; what one leaves out is 0, false, or of ordinary length."""
    return {
        factor.name: np.array(
            [each.get(factor.name, _USUAL.get(factor.name, 0)) for each in comments], _TYPES[factor.kind]
        )
        for factor in READ
    }


def ids_of(comments: Sequence[dict[str, Any]]) -> Column:
    """Return ids for ``comments``, rising."""
    return np.arange(101, 101 + len(comments), dtype=np.int64)
