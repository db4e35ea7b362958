"""Ids in requests. A greater one than a column can hold is refused: the database would answer it with an error, which
counts as a failure of the database."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator, Field

from douban_pipeline.comments.types import BIGGEST_ID


def _fitting(given: str) -> str:
    if int(given) > BIGGEST_ID:
        raise ValueError(f"{given} is greater than {BIGGEST_ID}")
    return given


Number = Annotated[int, Field(ge=0, le=BIGGEST_ID)]
"""An id in a query."""
CommentId = Annotated[int, Path(ge=0, le=BIGGEST_ID)]
ObjectId = Annotated[int, Path(ge=1, le=BIGGEST_ID)]
IdText = Annotated[str, Field(pattern=r"^\d{1,19}$"), AfterValidator(_fitting)]
"""An id as text, because JavaScript cannot hold all of them as numbers."""
