"""Where commands write to."""

from rich.console import Console

console = Console()


def plain(text: str) -> None:
    """Print ``text`` as it is, never wrapped or coloured: for what is piped on or copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
