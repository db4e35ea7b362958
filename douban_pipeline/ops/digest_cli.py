"""The options of the commands ``digest …``; `ops.digesting` and `ops.pushing` do the work, imported when called."""

from typing import Annotated

import typer

digest = typer.Typer(
    help="The daily digest: its slots, its articles, and what is pushed to whom.", no_args_is_help=True
)
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing.")]


@digest.command("run")
def digest_run(
    slot: Annotated[
        str, typer.Argument(metavar="[DAY|SLOT]", help="Such as '2026-11-20|07:00'; default: last due.")
    ] = "",
    dry_run: _DryRun = False,
) -> None:
    """Run a slot now, without Dagster; one that succeeded is not run again. Exit with 1 if it failed."""
    from douban_pipeline.ops import digesting

    if not digesting.run(slot, dry_run=dry_run):
        raise typer.Exit(1)


@digest.command("list")
def digest_list(
    days: Annotated[int, typer.Option(min=1, max=36_500, help="How many days back.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the slots of the last days: what each took in, analysed and found, and what went wrong."""
    from douban_pipeline.ops import digesting

    digesting.list_slots(days, as_json=as_json)


@digest.command("why")
def digest_why(words: Annotated[str, typer.Argument(help="Words of an article's title.")]) -> None:
    """Say what became of articles: body, analysis, score, and why there is none."""
    from douban_pipeline.ops import digesting

    digesting.explain(words)


@digest.command("rubric")
def digest_rubric() -> None:
    """Write subject.md and rubric.md where they are not there yet, and say which version is in force."""
    from douban_pipeline.ops import digesting

    digesting.write_rubric()


@digest.command("login")
def digest_login() -> None:
    """Forget WeRSS's token and refused logins, and log in once: after the password was put right."""
    from douban_pipeline.ops import digesting

    digesting.log_in()


@digest.command("push")
def digest_push(
    test: Annotated[
        str | None, typer.Option("--test", metavar="CHANNEL", help="Send a test message to this channel; all for all.")
    ] = None,
    dry_run: _DryRun = False,
) -> None:
    """Send what is due in the outbox now, without Dagster, or a test message; exit with 1 if one was not taken."""
    from douban_pipeline.ops import pushing

    good = pushing.test(test) if test is not None else pushing.push(dry_run=dry_run)
    if not good:
        raise typer.Exit(1)


@digest.command("messages")
def digest_messages(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, the newest first.")] = 30,
) -> None:
    """Show the messages of the outbox: what arrived, what waits, and why."""
    from douban_pipeline.ops import pushing

    pushing.show(limit)
