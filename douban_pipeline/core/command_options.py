"""Commands whose options are the fields of a dataclass, so that each option is stated once."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

Options = TypeVar("Options")


def with_options(options: type[Options], run: Callable[[Options], None]) -> Callable[..., None]:
    """Return a command for Typer that calls ``run`` with its options; its help is the docstring of ``run``.

    Args:
        options: A dataclass; its fields are annotated with `typer.Option` or `typer.Argument`.
        run: What the command does, called with an instance.
    """

    def command(**given: Any) -> None:
        run(options(**given))

    command.__doc__ = run.__doc__
    command.__annotations__ = get_type_hints(options, include_extras=True)
    command.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
    return command
