"""Entry point of the command line."""

import warnings

from dagster import BetaWarning


def main() -> None:
    """Run the command line."""
    # Beta features are used on purpose; their warnings are for us, not for who runs the command.
    warnings.simplefilter("ignore", BetaWarning)
    from douban_pipeline.ops.cli import main as run

    run()


if __name__ == "__main__":
    main()
