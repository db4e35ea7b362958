"""What the paths of the moderators' page accept and return."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt
from typing_extensions import TypedDict

from douban_pipeline.comments.answers import At, Id
from douban_pipeline.comments.api.problems import IdText, Moment, not_a_switch
from douban_pipeline.comments.heat.rules import Rule, RuleDecision, RuleScope
from douban_pipeline.comments.store.actions import LogEntry
from douban_pipeline.comments.trust import MOST_NUMBER, TrustLevel, TrustRules
from douban_pipeline.comments.types import CommentStatus


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SessionRequest(_Body):
    """Begins a session: the token is in the header ``Authorization``."""

    name: str = Field("", max_length=60, description="Name of the moderator, for the log.")
    remember: StrictBool = Field(False, description="Whether the session outlasts the browser, for 30 days.")


class Moderator(TypedDict):
    """Who is logged in."""

    key: str
    name: str
    audit: bool


class StatusRequest(_Body):
    """Request to set the status of comments; by default a dry run that only reports what would change."""

    ids: list[IdText] = Field(min_length=1, max_length=500)
    status: Annotated[CommentStatus, BeforeValidator(not_a_switch)]
    reason: str = Field(min_length=2, max_length=300)
    dry_run: StrictBool = True


class Undo(_Body):
    """Request to undo the last decision on comments, or on the comments of a batch."""

    ids: list[IdText] = Field(default_factory=list, max_length=500)
    batch: str = Field("", max_length=64)
    reason: str = Field("", max_length=300)


class TrustRequest(_Body):
    """Sets the level of a user or an address."""

    kind: Literal["user", "address"]
    subject: str = Field(min_length=1, max_length=48, description="Id of a user, address, or network.")
    level: TrustLevel
    reason: str = Field(min_length=2, max_length=300)
    until: Moment | None = None


class CurrentTrust(TypedDict):
    """A level in force."""

    id: Id
    kind: str
    subject: str
    level: str
    reason: str
    author: str
    at: At
    until: At | None


class TrustNumbers(_Body):
    """How users are trusted whom nobody set a level for; see `trust.TrustRules`."""

    newcomers: StrictInt = Field(ge=0, le=MOST_NUMBER)
    trusted_after: StrictInt = Field(ge=0, le=MOST_NUMBER)


class TrustPage(TypedDict):
    """Levels in force, the rules, and the rules' defaults."""

    levels: list[CurrentTrust]
    rules: TrustRules
    defaults: TrustRules


class WordsRequest(_Body):
    """Adds words with a consequence, and removes others."""

    consequence: Literal["mask", "review"] = "review"
    add: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(default_factory=list, max_length=1000)
    remove: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(default_factory=list, max_length=1000)


class WordsPage(TypedDict):
    """Words of moderators by consequence, and the number of those from the CMS's files, which are edited there."""

    mask: list[str]
    review: list[str]


class RuleRequest(_Body):
    """A rule of the order by heat, with the section that it is previewed on."""

    section: IdText
    name: str = Field(min_length=1, max_length=40)
    expression: str = Field(min_length=1, max_length=1000)
    decision: RuleDecision = RuleDecision.BOOST
    amount: Annotated[float, BeforeValidator(not_a_switch)] = Field(0.0, ge=0, le=20)
    here: StrictBool = Field(True, description="Whether it is for this section alone.")
    reason: str = Field("", max_length=300)

    def rule(self) -> Rule:
        """Return the rule."""
        moves = self.decision in (RuleDecision.BOOST, RuleDecision.SINK)
        scope = RuleScope(sections=(int(self.section),)) if self.here else RuleScope()
        amount = self.amount if moves else 0.0
        return Rule(self.name, self.expression, self.decision, amount, scope=scope, reason=self.reason)


class PreviewedComment(TypedDict):
    """A comment among the first, with its places, from 1, without and with the rule; None below the first."""

    id: Id
    text: str
    before: int | None
    after: int | None


class PreviewedRule(TypedDict):
    """What a rule would move in a section."""

    sentences: list[str]
    comments: int
    hits: int
    changed: int
    moved: int
    first: list[PreviewedComment]


class CurrentRule(TypedDict):
    """A rule in force."""

    name: str
    expression: str
    decision: RuleDecision
    amount: float
    sections: list[str]
    reason: str


class RulesPage(TypedDict):
    """Rules in force, and the factors that conditions may use."""

    rules: list[CurrentRule]
    factors: dict[str, str]


class LogPage(TypedDict):
    """Entries of the log, newest first."""

    entries: list[LogEntry]
    next: str | None


class FoundComment(TypedDict):
    """A comment as moderators see it, whatever its status."""

    id: Id
    section: Id
    root: Id | None
    user: Id | None
    name: str
    floor: int
    at: At
    content: str
    status: str
    rank: str
    by: str
    reasons: list[str]
    likes: int
    dislikes: int
    reports: int
    replies: int


class FoundObject(TypedDict):
    """The film or other page of a comment, and what its section allows."""

    type: int
    id: Id
    title: str
    poster: bool
    closed: bool
    review_first: bool


class EarlierText(TypedDict):
    """A text that an edit replaced."""

    content: str
    at: At


class FoundRow(FoundComment):
    """A comment that was searched for; ``pending`` while something about it waits to be applied."""

    pending: bool
    object: FoundObject
    address: str | None
    reported: Annotated[dict[str, int], Field(description="Numbers of reports by reason.")]
    edits: int
    pinned: bool
    featured: bool
    promoted: bool
    erased: bool


class FoundPage(TypedDict):
    """A page of comments that were searched for."""

    items: list[FoundRow]
    next: Id | None
    degraded: list[str]


class ExplainedComment(FoundComment):
    """A comment with the decisions on it, and why it stands where it stands."""

    decided: list[dict[str, Any]]
    edits: list[EarlierText]
    heat: dict[str, Any] | None
    place_by_heat: int | None
    why: list[str]
    degraded: list[str]


class Moderated(TypedDict):
    """What a decision changes, and why it does not change others, by id; with the batch unless it is a dry run."""

    dry_run: NotRequired[bool]
    batch: NotRequired[str]
    refused: dict[Id, str]


class Undone(TypedDict):
    """Comments whose last decision is undone."""

    undone: list[Id]


class ServiceState(TypedDict):
    """The state of the process that answers."""

    dependencies: list[dict[str, Any]]
    sites: list[dict[str, Any]]
    hot: Annotated[list[tuple[str, int]], Field(description="What is asked for most, and how often within a second.")]
    waiting_seconds: float
    loads: int
    redis: bool | None
