"""What the operators' commands ask of a system beyond its settings and its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.language import terminal_text


@dataclass(frozen=True)
class SiteQuestion:
    """What only the site's owner knows, and the setting that holds the answer.

    Attributes:
        option: Its option of ``init``, without the dashes.
        variable: The setting's variable.
        about: Lines that say what is asked and what is known.
        prompt: The question, in a few words.
        given: The answer that the settings hold now, as it is typed.
        proposed: What is proposed to a person who was never asked.
        unasked: The answer where nobody can be asked: what does no harm.
        setting: Returns the setting's value for an answer; raises ValueError with what is wrong with it.
    """

    option: str
    variable: str
    about: Sequence[str]
    prompt: str
    given: str
    proposed: str
    unasked: str
    setting: Callable[[str], str]


class Operations:
    """The defaults suit a system that needs only its tables; a system overrides what it has to say.

    ``services`` are always the system's own, as its `System.services` returns them.
    """

    def mode(self, services: Any) -> str:
        """Return what the settings say, in a line."""
        return terminal_text("tables in {shown_url}").format(shown_url=services.shown_url)

    def place(self, _services: Any) -> CheckResult | None:
        """Check that the database is the right one, before any other check of it; None for nothing to check."""
        return None

    def checks(self, _services: Any) -> Iterator[CheckResult]:
        """Yield further checks of the database; called only if settings, tables, grants and clock are in order."""
        return iter(())

    def outside_checks(self, _services: Any, *, ask: bool, usable: bool) -> Iterator[CheckResult]:
        """Yield checks of what is not in the database.

        Args:
            ask: Also send one request to each source.
            usable: Whether the database and its tables are in order.
        """
        del ask, usable
        return iter(())

    def missing_rights(self, _services: Any) -> list[str]:
        """Return the privileges beyond those on its own tables that the account lacks, such as ``SELECT ON t``."""
        return []

    def grants(self, _services: Any, _user: str, _host: str) -> Iterator[str]:
        """Yield SQL for the privileges that an account needs beyond those on the system's own tables."""
        return iter(())

    def introduction(self, _services: Any) -> Iterator[str]:
        """Yield lines that ``setup`` prints at its end."""
        return iter(())

    def next_steps(self, _services: Any) -> Iterator[str]:
        """Yield what to do after ``setup``."""
        return iter(())

    def after_upgrade(self, _services: Any) -> Iterator[CheckResult]:
        """Yield checks whose results ``setup`` and ``upgrade`` print at their end."""
        return iter(())

    def questions(self, _services: Any) -> Iterator[SiteQuestion]:
        """Yield what ``init`` asks about the site before the first run."""
        return iter(())

    def first_look(self, _services: Any, _most: int, _report: Callable[[str], None]) -> str | None:
        """Do a little of its work without writing to the CMS; return the service's page of it, None for nothing.

        Args:
            _services: Its own.
            _most: How many things to do.
            _report: Takes a line about the progress.
        """
        return None


OPERATIONS = Operations()
"""For a system that has nothing to add."""
