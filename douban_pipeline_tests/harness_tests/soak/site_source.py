"""A tiny source of rows for tests of the soak: invented films, told the same way whenever they are asked for."""

from __future__ import annotations

from typing import Any

from douban_pipeline_tests.harness.fixtures.scenario import FILMS, row_of
from douban_pipeline_tests.harness.soak.site import as_stored


class Films:
    """The films of the tests as a source: video n is of film n, and beyond the last they begin anew."""

    def row(self, vod_id: int) -> dict[str, Any]:
        """Return a video as it is collected."""
        return as_stored(row_of(FILMS[(vod_id - 1) % len(FILMS)], vod_id))

    def subject(self, vod_id: int) -> int:
        """Return the Douban id that is right for a video."""
        return int(FILMS[(vod_id - 1) % len(FILMS)]["id"])
