"""Where commands write to, and how Dagster is loaded for one."""

import warnings

from rich.console import Console

console = Console()


def plain(text: str) -> None:
    """Print ``text`` as it is, never wrapped or coloured: for what is piped on or copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def silence_beta_warnings() -> None:
    """Keep Dagster's warnings of beta features from who runs a command: we use them on purpose. Imports Dagster."""
    from dagster import BetaWarning

    warnings.simplefilter("ignore", BetaWarning)
