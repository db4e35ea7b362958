"""Entry point: ``python -m douban_pipeline_tests.tools.evaluate``."""

import inspect
from typing import Any, get_type_hints

import typer
from rich.markup import escape

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.console import console
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.douban.settings import load_settings
from douban_pipeline_tests.tools.evaluate import command
from douban_pipeline_tests.tools.evaluate.options import EvaluationOptions


def evaluate(**given: Any) -> None:
    """Measure the matcher on labelled records and write a report: wrong links, coverage, reviews, requests.

    A labelled row has the CMS's columns and the subject that it is (douban_id or vod_douban_id), as a line of JSON or
    of a CSV file whose first line names the columns:

    {"vod_name": "英雄", "vod_year": "2002", "vod_area": "大陆", "vod_director": "张艺谋", "vod_actor": "李连杰,梁朝伟",
    "type": "movie", "douban_id": 1306123, "source": "mine"}

    In place of douban_id, "expect": "none" says that its subject is not in the corpus, "trap_id" which one it is not.
    """
    try:
        within_limits = command.run(EvaluationOptions(**given), load_settings(), console, SystemClock())
    except OperatingError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print("stopped; no report was written or changed")
        raise typer.Exit(130) from None
    if not within_limits:
        raise typer.Exit(1)


evaluate.__annotations__ = get_type_hints(EvaluationOptions, include_extras=True)
evaluate.__signature__ = inspect.signature(EvaluationOptions)  # type: ignore[attr-defined]

if __name__ == "__main__":
    typer.run(evaluate)
