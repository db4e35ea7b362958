"""Opens what all processes of the service share: counts of wrong tokens, questions and comments, and ended logins."""

from __future__ import annotations

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.douban.store.tables import own_tables

_SECONDS = 2.0
"""How long a count may wait for the database; after that the process counts alone."""


def open_guard(clock: Clock | None = None) -> GuessGuard:
    """Return the guard against guessing, over the table in the library's database.

    Without ``DOUBAN_PIPELINE_DATABASE_URL`` it is in a file in ``HOME``, which the processes of this machine share.
    """
    settings = load_settings()
    clock = clock or SystemClock()
    table = own_tables(settings.table_prefix).counter
    url = settings.database_url.get_secret_value()
    engine = open_engine(url or f"sqlite:///{settings.home.absolute() / 'serve.sqlite'}", seconds=_SECONDS)
    if not url:
        table.metadata.create_all(engine, tables=[table])
    return GuessGuard(Counters(clock, engine, table))
