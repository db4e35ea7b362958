"""The console that commands print to."""

from rich.console import Console

console = Console()


def plain(text: str) -> None:
    """Print ``text`` unchanged, never wrapped or coloured: for output that is piped or copied."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
