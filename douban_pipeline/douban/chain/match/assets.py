"""Two steps of the chain, candidates from outside sources and verdicts on them, and what is judged again by itself."""

from collections import Counter
from functools import partial

import dagster as dg
from pydantic import Field

from douban_pipeline.core.database import reading, run_transaction
from douban_pipeline.core.language import page_docstring, page_text
from douban_pipeline.core.ui.presentation import counted, local_time, panel, subject_link
from douban_pipeline.core.ui.tmdb_attribution import attribution_of
from douban_pipeline.dagster_kit.labels import TABLES
from douban_pipeline.dagster_kit.launchpad import LaunchpadConfig
from douban_pipeline.douban.chain.assets import begin_step, chain_asset, figures_of, tables_with_rows
from douban_pipeline.douban.chain.due.assets import due_videos
from douban_pipeline.douban.chain.match.candidates import CandidateFinder
from douban_pipeline.douban.chain.match.descriptions import described_videos
from douban_pipeline.douban.chain.match.due_rechecks import RECHECKS_PER_DAY, RecheckReason, queue_due_rechecks
from douban_pipeline.douban.chain.match.found_candidates import FoundCandidates
from douban_pipeline.douban.chain.match.judgement import with_posters
from douban_pipeline.douban.chain.match.rechecks import search_refusal
from douban_pipeline.douban.chain.match.task_closure import skip_task
from douban_pipeline.douban.chain.match.verdict_rows import VerdictSummary
from douban_pipeline.douban.chain.match.verdicts import VerdictWriter
from douban_pipeline.douban.evidence.known_names import names_by_title
from douban_pipeline.douban.match_inputs import profile_of
from douban_pipeline.douban.pace import SUBJECT_CACHE_AGE
from douban_pipeline.douban.resources import SEARCH_POOL
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import TaskStage, TaskType
from douban_pipeline.douban.store.tables import SHARDS
from douban_pipeline.douban.store.tasks import Task
from douban_pipeline.douban.store.videos import state_rows

PATIENCE = 3
"""Times that nothing found while engines kept silent is tried again before it is believed."""


@chain_asset(
    deps=[due_videos],
    pool=SEARCH_POOL,
)
@page_docstring
def search_candidates(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Finds the subjects each MATCH task's video might be, and fetches what is needed to judge them.

    For a RECHECK task the subject that is linked already is fetched too.

    Asks the search provider in up to three forms and douban.php for the details of at most `TOP_N` hits, all
    paced by `mac_douban_gate` and kept in `mac_douban_snapshot`, so that nothing is asked twice. A source that is
    failing or closed defers tasks instead of failing the run: an empty answer and a failed call are never mixed up.
    """
    session = begin_step(context, services)
    settings = services.settings
    tasks = session.lease(TaskStage.SEARCH)
    with reading(services.engine) as connection:
        vod_ids = [task.vod_id for task in tasks]
        rows = services.cms.rows(connection, vod_ids)
        states = state_rows(connection, services.tables, vod_ids)
    finder = CandidateFinder(
        services.search,
        services.douban,
        top_n=settings.top_n,
        search_age=settings.search_cache_age,
        subject_age=SUBJECT_CACHE_AGE,
        profile=profile_of(settings),
        known=services.known_subjects,
    )
    attempts = session.attempts("search")
    wanted: list[Task] = []
    for task in tasks:
        # The site may have locked the row since the video got due.
        respects = settings.respect_vod_lock and not task.ordered
        row, state = rows.get(task.vod_id), states.get(task.vod_id)
        refusal = search_refusal(task.task_type, row, state, respect_vod_lock=respects)
        if refusal is not None:
            skip_task(services, session.queue, task, rows.get(task.vod_id), refusal)
        else:
            wanted.append(task)
    wanted_rows = {task.vod_id: rows[task.vod_id] for task in wanted}
    described_by = described_videos(services, wanted_rows, warn=context.log.warning)
    videos = {vod_id: each.video for vod_id, each in described_by.items()}
    with reading(services.engine) as connection:
        names = names_by_title(connection, services.tables, services.cms, videos, wanted_rows)
    found: dict[int, FoundCandidates] = {}

    def find(task: Task) -> FoundCandidates:
        current = states[task.vod_id]["vod_douban_id"] if task.task_type is TaskType.RECHECK else 0
        known = names.get(task.vod_id, ())
        result = finder.find(videos[task.vod_id], patience=PATIENCE - task.attempts, current=current, names=known)
        return with_posters(services, rows[task.vod_id], videos[task.vod_id], result)

    for task, result in attempts.run(wanted, find, workers=settings.videos_in_work):
        advance = partial(
            session.queue.advance, task=task, stage=TaskStage.SCORE, payload={**task.payload, **result.to_payload()}
        )
        if not run_transaction(services.engine, advance):
            attempts.lost += 1
            continue
        found[task.vod_id] = result
    rows_shown = [
        {
            "vod_id": vod_id,
            "title": videos[vod_id].title,
            "candidates": len(result.subjects),
            "requests": result.requests,
            "first": subject_link(result.subjects[0].douban_id if result.subjects else 0),
        }
        for vod_id, result in sorted(found.items(), key=lambda pair: -pair[1].requests)
    ]
    requests = sum(result.requests for result in found.values())
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata=session.metadata(
            {
                **figures_of(
                    context,
                    session,
                    {
                        "searched": found,
                        "with_evidence": [vod_id for vod_id, each in described_by.items() if each.added is not None],
                        "with_known_names": names,
                        "with_posters": [vod_id for vod_id, result in found.items() if result.posters],
                        "without_candidates": [vod_id for vod_id, result in found.items() if not result.subjects],
                        "requests": Counter({vod_id: result.requests for vod_id, result in found.items()}).elements(),
                        **attempts.videos(),
                    },
                ),
                "requests_per_video": round(requests / len(found), 2) if found else 0.0,
                "most_requests": dg.MetadataValue.md(panel(rows_shown)),
                **attempts.counts(),
                **attempts.pace(),
                **tables_with_rows({"put_back": attempts.requeued(services.settings.zone)}),
            }
        ),
    )


@chain_asset(
    deps=[search_candidates],
)
@page_docstring
def scored_matches(context: dg.AssetExecutionContext, services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """Judges each searched video from the archived answers and stores the verdict with everything it was reached by.

    CONFIRMED needs the score, the lead and the acceptance gate; it waits in `mac_douban_verdict` for
    `synced_fields` and for the guards between. REVIEW and NOT_FOUND settle the video's state at once. Every
    candidate's points and conflicts are in `mac_douban_review_candidate`. A link that is judged again (RECHECK) stays
    as it is: what would not be confirmed any more goes to review with both verdicts. Writes nothing to the CMS and
    makes no request.
    """
    session = begin_step(context, services)
    writer = VerdictWriter(services, session.queue, session.run_id, warn=context.log.warning)
    withdrawn = writer.quarantine()
    for breach in withdrawn:
        context.log.warning(f"withdrew the verdict on video {breach.vod_id}: {breach.what}")
    # What this run searched comes first; there is room beside it for links to be judged again without a request.
    tasks = session.lease(TaskStage.SCORE, spare=session.limit)
    judged = writer.judge(tasks)
    verdicts = Counter(item.status for item in judged)
    context.log.info(counted("videos judged", verdicts))
    doubtful = sorted((item for item in judged if item.status != "CONFIRMED"), key=lambda item: -(item.score or 0.0))
    confirmed = sorted((item for item in judged if item.status == "CONFIRMED"), key=lambda item: item.score or 0.0)
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata=session.metadata(
            {
                **figures_of(
                    context,
                    session,
                    {
                        "judged": [item.vod_id for item in judged],
                        **{
                            status.lower(): [item.vod_id for item in judged if item.status == status]
                            for status in ("CONFIRMED", "REVIEW", "NOT_FOUND")
                        },
                        "with_evidence": [item.vod_id for item in judged if item.with_evidence],
                        "rechecked": [item.vod_id for item in judged if item.recheck],
                        "rechecked_doubtful": [
                            item.vod_id for item in judged if item.recheck and item.status == "REVIEW"
                        ],
                    },
                ),
                "withdrawn": len(withdrawn),
                "profile": services.settings.match_profile,
                "closest_confirmed": dg.MetadataValue.md(panel([_confirmed(item) for item in confirmed])),
                "most_doubtful": dg.MetadataValue.md(panel([_doubtful(item) for item in doubtful])),
                **_credit(judged),
            }
        ),
    )


def _credit(judged: list[VerdictSummary]) -> dict[str, dg.MetadataValue]:
    """Return TMDB's logo and sentence where its titles had a part in verdicts."""
    credit = attribution_of(*(item.explanation for item in judged))
    return {"attribution": dg.MetadataValue.md(credit)} if credit else {}


def _confirmed(item: VerdictSummary) -> dict[str, object]:
    return {
        "vod_id": item.vod_id,
        "title": item.title,
        "subject": subject_link(item.douban_id),
        "score": item.score,
        "lead": item.lead,
        "points": item.points,
    }


def _doubtful(item: VerdictSummary) -> dict[str, object]:
    return {
        "vod_id": item.vod_id,
        "title": item.title,
        "verdict": item.status,
        "best": subject_link(item.douban_id),
        "points": item.points,
        "why": item.explanation,
    }


class DueRechecksConfig(LaunchpadConfig):
    """Which slice of the library is looked at."""

    part: int = Field(0, ge=0, description=page_text("Number of the slice, from 0."))
    parts: int = Field(1, ge=1, le=SHARDS, description=page_text("Number of slices into which the shards are divided."))


@dg.asset(
    # When and by which rules links were judged, and which links there are. `synced_fields` imports this module.
    deps=[scored_matches, "synced_fields"],
    group_name="chain",
    kinds={"mysql", "python"},
)
@page_docstring
def due_rechecks(
    context: dg.AssetExecutionContext, config: DueRechecksConfig, services: dg.ResourceParam[Services]
) -> dg.MaterializeResult:
    """Queues confirmed, unlocked links to be judged again (RECHECK), which the next run of their shard does.

    Those whose subject's facts changed, those that rest on a title whose confirmation was taken back, then those that
    other rules confirmed, all from the archive and without a request where it still holds the answers; then, searched
    for anew, those judged longest ago: 0.2 % of the links a day, all together at most 5,000. No link is taken away by
    itself. A schedule looks at one slice of the shards an hour; what is repeated queues nothing twice.
    """
    services.ready()
    shards = range(config.part, SHARDS, config.parts)
    report = queue_due_rechecks(services, shards, parts=config.parts, run_id=context.run.run_id)
    context.log.info(f"{len(report.queued)} of {report.links} links queued, {report.searched} of them to search for")
    rows = [
        {
            "vod_id": item.vod_id,
            "subject": subject_link(item.douban_id),
            "why": str(item.reason),
            "judged": local_time(item.judged_at, services.settings.zone),
            "requests": "search" if item.found is None else "none",
        }
        for item in report.queued
    ]
    return dg.MaterializeResult(
        data_version=TABLES,
        metadata={
            "links": report.links,
            "queued": len(report.queued),
            **{f"for_{reason}": report.count(reason) for reason in RecheckReason},
            "to_search": report.searched,
            "left": sum(report.left.values()),
            "today": report.today,
            "allowance": RECHECKS_PER_DAY,
            "rechecks": dg.MetadataValue.md(panel(rows)),
        },
    )
