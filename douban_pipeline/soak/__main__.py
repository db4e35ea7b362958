"""`python -m douban_pipeline.soak`."""

import typer

from douban_pipeline.soak.command import run

if __name__ == "__main__":
    typer.run(run)
