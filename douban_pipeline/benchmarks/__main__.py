"""Entry point: ``python -m douban_pipeline.benchmarks``."""

import warnings

from dagster import BetaWarning

if __name__ == "__main__":
    warnings.simplefilter("ignore", BetaWarning)
    from douban_pipeline.benchmarks.command import main

    main()
