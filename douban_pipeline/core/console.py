"""The console that commands print to."""

from rich.console import Console

console = Console()


def plain(text: str) -> None:
    """Print ``text`` unchanged, never wrapped or coloured: for output that is piped or copied."""
    console.file.write(f"{text}\n")
