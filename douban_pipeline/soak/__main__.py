"""Entry point: ``python -m douban_pipeline.soak``."""

import warnings

from dagster import BetaWarning

if __name__ == "__main__":
    warnings.simplefilter("ignore", BetaWarning)
    import typer

    from douban_pipeline.soak.command import run

    typer.run(run)
