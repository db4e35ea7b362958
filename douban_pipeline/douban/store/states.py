"""The states that rows of our tables go through, and what people may decide; stored by value."""

from __future__ import annotations

import enum


class ReviewStatus(enum.StrEnum):
    """The status of the link between a video and its subject."""

    NOT_FOUND = "NOT_FOUND"
    REVIEW = "REVIEW"
    CONFIRMED = "CONFIRMED"
    IGNORED = "IGNORED"


class IdSource(enum.StrEnum):
    """Where a video's Douban id comes from."""

    PERSON = "person"
    """A reviewer decided; the plan calls it manual."""
    IMPORT = "import"
    """A reviewer decided, in a spreadsheet that was imported."""
    AUTO = "auto"
    """A confirmed verdict on a subject that Douban's own index of titles named. Also what releases before 0006 linked
    whose search is no longer known."""
    AI_SEARCH = "ai_search"
    """A confirmed verdict on a subject that a web search named."""
    CMS = "cms"
    """It was in the CMS, or somebody put it there."""


BY_PEOPLE = frozenset({IdSource.PERSON, IdSource.IMPORT})
"""Sources of ids that reviewers chose: automation does not question them."""

BY_MATCH = frozenset({IdSource.AUTO, IdSource.AI_SEARCH})
"""Sources of ids that confirmed verdicts wrote."""


class TaskType(enum.StrEnum):
    """What a piece of queued work does."""

    MATCH_DOUBAN_ID = "MATCH_DOUBAN_ID"
    SYNC_DOUBAN = "SYNC_DOUBAN"
    AI_INTRO = "AI_INTRO"
    RECHECK = "RECHECK"


class TaskStatus(enum.StrEnum):
    """The life of a task; PENDING and RUNNING are open."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAIL = "FAIL"
    SKIP = "SKIP"


class TaskStage(enum.StrEnum):
    """Which asset handles an open task next."""

    SEARCH = "search"
    SCORE = "score"
    SYNC = "sync"
    INTRO = "intro"


class ChangeState(enum.StrEnum):
    """The life of a logged write."""

    PREPARED = "prepared"
    APPLIED = "applied"
    REFUSED = "refused"
    ABANDONED = "abandoned"
    CONFLICT = "conflict"
    REVERTED = "reverted"


class VerdictState(enum.StrEnum):
    """The outcome of a verdict."""

    PENDING = "pending"
    APPLIED = "applied"
    REFUSED = "refused"
    SUPERSEDED = "superseded"
    DRY_RUN = "dry_run"


class DecisionAction(enum.StrEnum):
    """What a reviewer may decide about a video; members are named as they are typed into the launchpad."""

    confirm_top1 = "confirm_top1"
    """The best candidate of the newest verdict is the one."""
    choose = "choose"
    """Another of its candidates is the one."""
    set_id = "set_id"
    """The given subject is the one, whoever found it."""
    replace_and_lock = "replace_and_lock"
    """The given subject is the one, even where another id is locked, and it is locked."""
    clear_id = "clear_id"
    """The current id is wrong; it is not linked automatically again."""
    ignore = "ignore"
    """Leave the video alone, for some days or until a person says otherwise."""
    lock_id = "lock_id"
    """No automatic run changes the id."""
    unlock_id = "unlock_id"
    """Automatic runs may change the id again."""
    lock_intro = "lock_intro"
    """No automatic run changes the synopsis."""
    unlock_intro = "unlock_intro"
    """Automatic runs may change the synopsis again."""
    rematch = "rematch"
    """Look for the subject anew; also ends being ignored."""
    redo_intro = "redo_intro"
    """Have the synopsis written anew, even a locked one, and lock it."""
    sync_now = "sync_now"
    """Ask Douban for the linked subject at once and refresh the fields."""


class DecisionState(enum.StrEnum):
    """The outcome of a reviewer's decision."""

    PENDING = "pending"
    """It waits for a run of its lane, or of its shard."""
    QUEUED = "queued"
    """A task was queued for it, whose fate it shares."""
    APPLIED = "applied"
    REFUSED = "refused"
    REVERTED = "reverted"
    """It was applied, and reverted since."""


class IntroState(enum.StrEnum):
    """The outcome of one answer of the language model."""

    WRITTEN = "written"
    """It is in the CMS, or was until somebody changed it."""
    REFUSED = "refused"
    """The fact guard, or the write path, did not let it through."""
    FAILED = "failed"
    """The call gave no usable answer."""
    PREVIEW = "preview"
    """It passed the guard, and was only shown so far or is about to be written."""
    WITHDRAWN = "withdrawn"
    """It was reverted."""
