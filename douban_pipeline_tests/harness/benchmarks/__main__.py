"""Entry point: ``python -m douban_pipeline_tests.harness.benchmarks``."""

import typer

from douban_pipeline_tests.harness.benchmarks.command import run

if __name__ == "__main__":
    typer.run(run)
