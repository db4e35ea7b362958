"""The console that commands print to."""

import sys

from rich.console import Console

console = Console()


def plain(text: str) -> None:
    """Print ``text`` unchanged, never wrapped or coloured: for output that is piped or copied."""
    console.file.write(f"{text}\n")


def print_what_cannot_be_encoded() -> None:
    """Have the streams of this process write characters that their encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
