"""What is wrong with what a person asked for, all of it at once. Knows nothing of Dagster."""

from __future__ import annotations

from collections.abc import Sequence


class ProblemsError(Exception):
    """It cannot be done as asked; ``problems`` holds a sentence for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)
