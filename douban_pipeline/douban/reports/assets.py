"""The decorator that report assets share."""

from collections.abc import Callable
from typing import Any

import dagster as dg

from douban_pipeline.core.language import page_docstring
from douban_pipeline.douban.chain.sync.assets import synced_fields


def report_asset(function: Callable[..., Any]) -> dg.AssetsDefinition:
    """Decorate the function of a report asset: it depends on `synced_fields` and reads the library's database."""
    return dg.asset(deps=[synced_fields], group_name="reports", kinds={"mysql", "python"})(page_docstring(function))
