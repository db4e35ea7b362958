"""The decorator that report assets share."""

from collections.abc import Callable
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.language import described
from douban_pipeline.douban.chain.syncing.assets import synced_fields


def report_asset(chinese: str) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return the decorator of a report asset: it depends on `synced_fields` and reads the library's database.

    Args:
        chinese: Its description in Chinese; the English description is its docstring.
    """
    return dg.asset(
        deps=[synced_fields], group_name="reports", kinds={"mysql", "python"}, description=described(chinese)
    )
