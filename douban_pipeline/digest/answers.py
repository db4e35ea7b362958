"""The model's answers as pydantic models: the analysis of an article, and a day's digest. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from douban_pipeline.core.payload import as_int

_LONGEST_TEXT = 15_000
"""Characters; MySQL's TEXT has 65,535 bytes, and a character takes up to four."""


def _score(value: Any) -> Any:
    """Return an integer from 0 to 100 for any number; other values unchanged, to be refused."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        value = round(value)
    number = as_int(value)
    return value if number is None else max(0, min(100, number))


def _text(value: Any) -> Any:
    """Return a text as every database takes it: without zero bytes, and cut to what a column holds."""
    return "" if value is None else value.replace("\0", "")[:_LONGEST_TEXT] if isinstance(value, str) else value


def _texts(value: Any) -> Any:
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def _markdown(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


Score = Annotated[int, BeforeValidator(_score), Field(ge=0, le=100)]
Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[Text], BeforeValidator(_texts)]


class _ModelAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Opportunity(_ModelAnswer):
    """One opportunity named in an article."""

    type: Text = ""
    title: Text = ""
    targets: Texts = Field(default_factory=list)
    reason: Text = ""
    risk: Text = ""
    horizon: Text = ""


class AnalysisAnswer(_ModelAnswer):
    """The model's analysis of an article."""

    score: Score
    has_opportunity: bool
    summary: Annotated[str, BeforeValidator(_text), Field(min_length=1)]
    opportunities: Annotated[list[Opportunity], BeforeValidator(lambda value: value or [])] = Field(
        default_factory=list
    )
    instructions_found: Annotated[bool, BeforeValidator(bool)] = False
    instructions: Texts = Field(default_factory=list)


class TopOpportunity(_ModelAnswer):
    """One of the day's best opportunities."""

    title: Text = ""
    score: Score = 0
    reason: Text = ""
    analysis_id: int | None = None


class DigestAnswer(_ModelAnswer):
    """The model's digest of a day."""

    has_opportunity: bool
    top_opportunities: Annotated[list[TopOpportunity], BeforeValidator(lambda value: value or [])] = Field(
        default_factory=list
    )
    digest_md: Annotated[str, BeforeValidator(_markdown), Field(min_length=1)]
    watchlist: Texts = Field(default_factory=list)


Kind = Literal["analysis", "digest"]
_MODELS: dict[Kind, type[AnalysisAnswer] | type[DigestAnswer]] = {"analysis": AnalysisAnswer, "digest": DigestAnswer}


def problem_of(kind: Kind, content: dict[str, Any]) -> str:
    """Return what is wrong with an answer, ``""`` for nothing; does not quote the answer."""
    try:
        _MODELS[kind].model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        return f"the answer's {'.'.join(map(str, first['loc']))} does not fit ({first['type']})"
    return ""
