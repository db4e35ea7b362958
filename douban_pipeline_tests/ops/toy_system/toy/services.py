"""The toy's settings and services."""

from typing import ClassVar

from douban_pipeline.toy.store import TREE
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.located_settings import LocatedSettings
from douban_pipeline.core.migrations import MigrationTree
from douban_pipeline.core.platform import Platform


class ToySettings(LocatedSettings):
    """Where the notes are."""

    model_config = SettingsConfigDict(env_prefix="DOUBAN_PIPELINE_TOY_")
    file: ClassVar[str] = "toy.sqlite"


class ToyServices(Platform):
    """The toy's database."""

    @property
    def tree(self) -> MigrationTree:
        """The migrations."""
        return TREE


def open_services(settings: ToySettings) -> ToyServices:
    """Return the services for ``settings``."""
    return ToyServices(open_engine(settings.tables_url), SystemClock(), settings)
