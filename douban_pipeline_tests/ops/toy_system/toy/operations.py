"""What operators are told of the toy."""

from douban_pipeline.toy.store import note
from sqlalchemy import func, select

from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.database import reading
from douban_pipeline.core.operations import Operations


class ToyOperations(Operations):
    """Counts the notes, and reads one table of the CMS."""

    def checks(self, services):
        """Yield how many notes there are."""
        with reading(services.engine) as connection:
            count = connection.execute(select(func.count()).select_from(note)).scalar_one()
        yield CheckResult("notes", "ok", f"{count} notes")

    def grants(self, services, user, host):
        """Yield a privilege beyond the own tables."""
        yield f"GRANT SELECT ON cms.mac_vod TO '{user}'@'{host}';"


OPERATIONS = ToyOperations()
