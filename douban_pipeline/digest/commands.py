"""The options of the commands ``digest …``; `digest.terminal`, imported when one is called, implements them."""

from typing import Annotated

import typer

commands = typer.Typer(
    name="digest", help="The daily digest: its slots, its articles, and what is pushed to whom.", no_args_is_help=True
)


@commands.command("run")
def digest_run(
    slot: Annotated[
        str, typer.Argument(metavar="[DAY|SLOT]", help="Such as '2026-11-20|07:00'; default: the last one due.")
    ] = "",
) -> None:
    """Run a slot now, without Dagster; one that succeeded is not run again. Exit with 1 if it failed."""
    from douban_pipeline.digest import terminal

    if not terminal.run(slot):
        raise typer.Exit(1)


@commands.command("why")
def digest_why(words: Annotated[str, typer.Argument(help="Words of an article's title.")]) -> None:
    """Show the state of articles: text, analysis, score, or why there is none."""
    from douban_pipeline.digest import terminal

    terminal.explain(words)


@commands.command("rubric")
def digest_rubric() -> None:
    """Write subject.md and rubric.md if they are missing, and show the current version."""
    from douban_pipeline.digest import terminal

    terminal.write_rubric()


@commands.command("login")
def digest_login() -> None:
    """Log in to WeRSS again, without the stored token and refusals: for use after correcting the password."""
    from douban_pipeline.digest import terminal

    terminal.log_in()


@commands.command("push")
def digest_push(
    test: Annotated[
        str | None, typer.Option("--test", metavar="CHANNEL", help="Send a test message to this channel; all for all.")
    ] = None,
) -> None:
    """Send the due messages of the outbox without Dagster, or a test message; exit with 1 if one is not accepted."""
    from douban_pipeline.digest import terminal

    good = terminal.test(test) if test is not None else terminal.push()
    if not good:
        raise typer.Exit(1)
