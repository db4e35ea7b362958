"""The jobs that try other rules on the whole library, and lift brakes; their descriptions are the manuals."""

import dataclasses
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import dagster as dg
from pydantic import Field
from sqlalchemy import false, update

from douban_pipeline.core.database import chunks, reading, run_statement
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import page_text
from douban_pipeline.dagster_kit.launchpad import Filled, LaunchpadConfig, PersonName, person_job
from douban_pipeline.dagster_kit.metadata import run_table
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.quality import figures
from douban_pipeline.douban.quality.brakes import close_again, lift
from douban_pipeline.douban.quality.labels import acts_of_people, chosen_by_people
from douban_pipeline.douban.quality.library_replay import Replay, replay_all
from douban_pipeline.douban.quality.stored_verdicts import RescoreSelection, StoredVerdicts
from douban_pipeline.douban.resources import PERSON_TAGS
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import Settings
from douban_pipeline.douban.store.states import ReviewStatus
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.matching.profiles import Profile
from douban_pipeline.matching.weights import PROFILES, Weights

_MOST_POINTS = 1000.0
_THRESHOLDS: dict[str, tuple[str, float, float]] = {
    "confirm_score": ("confirm", 0, _MOST_POINTS),
    "review_score": ("review", 0, _MOST_POINTS),
    "lead_score": ("lead", 0, _MOST_POINTS),
    "title_floor": ("title_floor", 0, 1),
    "year_gap": ("year_gap", 2, 50),
}
"""Fields of the config that are thresholds: their names in `Thresholds`, and the least and greatest value."""
_MOST_EXAMPLES = 50


# --- rescore_library --------------------------------------------------------------------------------------------------


class RescoreConfig(LaunchpadConfig):
    """The rules to try, and the videos on which they are tried."""

    profile: str | None = Field(None, description=page_text("plan or calibrated; omitted: the current value."))
    confirm_score: float | None = Field(
        None, description=page_text("Minimum score of a match that is confirmed; omitted: the current value.")
    )
    review_score: float | None = Field(
        None, description=page_text("Minimum score of a match that goes to review; omitted: the current value.")
    )
    lead_score: float | None = Field(
        None, description=page_text("Minimum lead over the best other work; omitted: the current value.")
    )
    title_floor: float | None = Field(
        None, description=page_text("Title similarity below which a candidate is rejected; omitted: the current value.")
    )
    year_gap: int | None = Field(
        None,
        description=page_text("Difference in years from which a candidate is rejected; omitted: the current value."),
    )
    weight_title: float | None = Field(
        None, description=page_text("Maximum points for the title; omitted: the current value.")
    )
    weight_year: float | None = Field(
        None, description=page_text("Maximum points for the year; omitted: the current value.")
    )
    weight_region: float | None = Field(
        None, description=page_text("Maximum points for the region; omitted: the current value.")
    )
    weight_director: float | None = Field(
        None, description=page_text("Maximum points for the director; omitted: the current value.")
    )
    weight_actors: float | None = Field(
        None, description=page_text("Maximum points for the actors; omitted: the current value.")
    )
    weight_genre: float | None = Field(
        None, description=page_text("Maximum points for the genre; omitted: the current value.")
    )
    weight_length: float | None = Field(
        None, description=page_text("Maximum points for the length; omitted: the current value.")
    )
    weight_tie_break: float | None = Field(
        None, description=page_text("Points for having a rating; omitted: the current value.")
    )
    shards: list[int] = Field(default_factory=list, description=page_text("Only these shards, 0 to 63; empty: all."))
    max_videos: int = Field(0, description=page_text("Maximum number of videos, by ascending id; 0: all."))
    since_days: int = Field(0, description=page_text("Only videos judged within this number of days; 0: all."))
    examples: int = Field(5, description=page_text("Number of examples shown per kind of change."))
    queue_changed: bool = Field(
        False,
        description=page_text(
            "true: unlinked videos whose verdict would change become due and are judged by the current settings."
        ),
    )


def rules_in_force(settings: Settings) -> dict[str, Any]:
    """Return the initial rules of the launchpad: the current settings."""
    profile = profile_of(settings)
    return {
        "profile": profile.name,
        **{name: getattr(profile.thresholds, threshold) for name, (threshold, _, _) in _THRESHOLDS.items()},
        **{f"weight_{name}": points for name, points in dataclasses.asdict(profile.weights).items()},
    }


def profile_from(config: RescoreConfig, in_force: Profile) -> Profile:
    """Return the rules of a config; fields that are left out are taken from ``in_force``."""
    thresholds = {threshold: getattr(config, name) for name, (threshold, _, _) in _THRESHOLDS.items()}
    points = {item.name: getattr(config, f"weight_{item.name}") for item in dataclasses.fields(Weights)}
    return Profile(
        config.profile or in_force.name,
        dataclasses.replace(in_force.weights, **_given(points)),
        dataclasses.replace(in_force.thresholds, **_given(thresholds)),
    )


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def problems_of(config: RescoreConfig, profile: Profile) -> list[str]:
    """Return a sentence for each problem of a config."""
    thresholds = profile.thresholds
    bounds: list[tuple[str, float, float, float]] = [
        *((name, getattr(thresholds, field), low, high) for name, (field, low, high) in _THRESHOLDS.items()),
        *((f"weight_{name}", points, 0, _MOST_POINTS) for name, points in dataclasses.asdict(profile.weights).items()),
        *(("shards", shard, 0, SHARDS - 1) for shard in config.shards),
        ("max_videos", config.max_videos, 0, 10**9),
        ("since_days", config.since_days, 0, 36_500),
        ("examples", config.examples, 0, _MOST_EXAMPLES),
    ]
    problems = [] if profile.name in PROFILES else [f"profile: 只能是 {' 或 '.join(PROFILES)}，现为 {profile.name!r}"]
    # Written so that NaN is out of range, too.
    problems += [
        f"{name}: 应在 {low:g} 到 {high:g} 之间，现为 {value:g}"
        for name, value, low, high in bounds
        if not low <= value <= high
    ]
    if thresholds.review > thresholds.confirm:
        problems.append(f"review_score: 不得高于 confirm_score（{thresholds.confirm:g}），现为 {thresholds.review:g}")
    return problems


def rescore(context: dg.OpExecutionContext, config: RescoreConfig, services: dg.ResourceParam[Services]) -> None:
    """Judge the stored verdicts again under the given rules, and report what would change."""
    services.ready()
    profile = profile_from(config, profile_of(services.settings))
    problems = problems_of(config, profile)
    if problems:
        raise ProblemsError(problems)
    since = services.clock.now() - timedelta(days=config.since_days) if config.since_days else None
    selection = RescoreSelection(tuple(config.shards), since, config.max_videos)
    videos = StoredVerdicts(services, selection).count()
    context.log.info(f"{videos} videos to judge again, profile {profile.name}")
    with reading(services.engine) as connection:
        chosen = chosen_by_people(acts_of_people(connection, services.tables))
    began = time.perf_counter()
    found = replay_all(
        services,
        selection,
        profile,
        chosen=chosen,
        examples=config.examples,
        progress=lambda done: context.log.info(f"{done} of {videos} videos judged again"),
    )
    seconds = time.perf_counter() - began
    queued = _make_due(services, found.reconsidered) if config.queue_changed else 0
    context.log.info(f"{found.changed} of {found.replayed} verdicts would change; {sum(found.lost.values())} lost")
    context.add_output_metadata(_metadata(found, config, queued, seconds))


def _make_due(services: Services, vod_ids: Sequence[int]) -> int:
    """Make the videos of ``vod_ids`` that still wait for a link due; return how many."""
    video, now = services.tables.video, services.clock.now()
    waiting = (
        video.c.douban_review_status.in_((ReviewStatus.REVIEW, ReviewStatus.NOT_FOUND)),
        video.c.douban_id_locked == false(),
        video.c.douban_next_sync_at > now,
    )
    due = update(video).where(*waiting).values(douban_next_sync_at=now)
    return sum(run_statement(services.engine, due.where(video.c.vod_id.in_(chunk))) for chunk in chunks(vod_ids))


def _metadata(found: Replay, config: RescoreConfig, queued: int, seconds: float) -> dict[str, object]:
    shown = {
        "moves": figures.move_rows(found),
        "examples": figures.example_rows(found),
        "reasons": figures.code_rows(found),
        "strata": figures.replayed_stratum_rows(found),
        "against_people": figures.people_rows(found),
        "not_replayed": figures.lost_rows(found),
        "judged_by": figures.version_rows(found),
    }
    return {
        "videos": found.videos,
        "replayed": found.replayed,
        "lost": sum(found.lost.values()),
        "changed": found.changed,
        "confirmed_before": found.confirmed(before=True),
        "confirmed_after": found.confirmed(before=False),
        "queued": queued,
        "microseconds_per_video": round(found.microseconds_per_video, 1),
        "seconds": round(seconds, 1),
        "config": dg.MetadataValue.json(config.model_dump()),
        **{name: run_table(rows, most=20 * _MOST_EXAMPLES) for name, rows in shown.items()},
    }


_EXAMPLE = {
    "profile": "plan",
    "confirm_score": 88,
    "lead_score": 10,
    "weight_director": 14,
    "shards": [],
    "max_videos": 0,
    "since_days": 0,
    "examples": 5,
    "queue_changed": False,
}


# --- lift_brakes ------------------------------------------------------------------------------------------------------


class LiftConfig(LaunchpadConfig):
    """Which brakes are lifted, by whom and why."""

    reviewer: PersonName = Field("", description=page_text("Your name; it is recorded with the brake."))
    note: str = Field("", description=page_text("Why automatic confirmation may resume, in one sentence."))
    dry_run: bool = Field(True, description=page_text("true: only check; false: lift the brakes."))
    strata: Annotated[list[str], Filled(page_text("Write the code of a stratum that automatic_precision lists."))] = (
        Field(default_factory=list, description=page_text("Codes of the strata, as shown by `automatic_precision`."))
    )
    close: bool = Field(
        False, description=page_text("true: close strata that were opened (`only:…`) again, instead of opening them.")
    )


def release(context: dg.OpExecutionContext, config: LiftConfig, services: dg.ResourceParam[Services]) -> None:
    """Lift the brakes or pull them again, or only show what would be done."""
    services.ready()
    if config.close:
        closed = close_again(
            services, config.strata, reviewer=config.reviewer, note=config.note, dry_run=config.dry_run
        )
        shown = run_table(figures.brake_rows(closed))
        context.add_output_metadata({"dry_run": config.dry_run, "closed": len(closed), "brakes": shown})
        return
    lifted = lift(services, config.strata, reviewer=config.reviewer, note=config.note, dry_run=config.dry_run)
    names = ", ".join(brake.stratum for brake in lifted.brakes)
    context.log.info(f"{'would lift' if config.dry_run else 'lifted'}: {names}; {lifted.waiting} videos waited for it")
    context.add_output_metadata(
        {
            "dry_run": config.dry_run,
            "lifted": len(lifted.brakes),
            "videos_waiting": lifted.waiting,
            "brakes": run_table(figures.brake_rows(lifted.brakes)),
        }
    )


lift_brakes = person_job(
    release,
    name="lift_brakes",
    manual=page_text(
        "Resume automatic confirmation in strata where `automatic_precision` suspended it, or open one that is safe."
    ),
    writes=page_text(
        "The brakes of the named strata; videos that waited for them become due. A dry run writes nothing."
    ),
    when=page_text(
        "When `precision_holds` fails and you have removed the cause, or `would_be_safe_to_open` names a stratum."
    ),
    examples={
        "": {
            "reviewer": "小王",
            "note": "已撤销有误的 3 条，并把 lead_score 提高到 12",
            "dry_run": False,
            "strata": ["short_title", "season"],
        }
    },
    nothing_done="未恢复任何类别",
    tags=PERSON_TAGS,
)


def jobs_for(settings: Settings) -> list[dg.JobDefinition]:
    """Return the jobs, their launchpads filled with the current settings."""
    rescore_library = person_job(
        rescore,
        name="rescore_library",
        manual=page_text("Preview other rules: judges the whole library again from archived answers."),
        writes=page_text(
            "Nothing, unless `queue_changed: true`: then the next visit of unlinked videos whose verdict would change."
        ),
        when=page_text("Before you change thresholds, points or the profile, and after an upgrade of the rules."),
        examples={"": _EXAMPLE},
        nothing_done="未重新计算",
        opening=rules_in_force(settings),
        tags=PERSON_TAGS,
    )
    return [rescore_library, lift_brakes]
