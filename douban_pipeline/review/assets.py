"""Unpartitioned assets for reviewers. What people read in order to decide belongs here."""

import dagster as dg

from douban_pipeline.presentation import Markdown, subject_link, table
from douban_pipeline.review.queue import Waiting, review_queue_of
from douban_pipeline.services import Services
from douban_pipeline.syncing.assets import synced_fields

_SHOWN = 50


@dg.asset(deps=[synced_fields], group_name="reports", kinds={"mysql", "python"})
def review_queue(services: dg.ResourceParam[Services]) -> dg.MaterializeResult:
    """What waits for a person: doubtful matches, doubtful ids that stand, and videos that failed five times in a row.

    The most watched come first, each with the best candidates of its newest verdict. Settle them with the job
    `record_decisions`; the next run of the shard carries the decisions out.
    """
    services.ready()
    queue = review_queue_of(services, most=_SHOWN)
    return dg.MaterializeResult(
        metadata={
            "waiting": queue.length,
            **{f"status_{status.lower()}": count for status, count in queue.by_status.items()},
            "most_pressing": dg.MetadataValue.md(table([_shown(entry) for entry in queue.first], most=_SHOWN)),
            "candidates": dg.MetadataValue.md(table(_candidate_rows(queue.first), most=3 * _SHOWN)),
        }
    )


def _shown(entry: Waiting) -> dict[str, object]:
    best = entry.candidates[0] if entry.candidates else None
    return {
        "影片": entry.vod_id,
        "片名": entry.title,
        "年份": entry.year,
        "现有 ID": subject_link(entry.douban_id),
        "首选": Markdown(f"{subject_link(best.douban_id)}") if best else "",
        "首选片名": f"{best.title}（{best.year or '?'}）" if best else "",
        "得分": best.score if best else None,
        "原因": entry.reason,
    }


def _candidate_rows(entries: tuple[Waiting, ...]) -> list[dict[str, object]]:
    return [
        {
            "影片": f"{entry.vod_id} {entry.title}",
            "#": candidate.rank,
            "条目": subject_link(candidate.douban_id),
            "片名": f"{candidate.title}（{candidate.year or '?'}）",
            "得分": candidate.score,
            "各项": " ".join(f"{name} {points:g}" for name, points in candidate.points.items()),
            "冲突": "；".join(candidate.conflicts.values()),
        }
        for entry in entries
        for candidate in entry.candidates[:3]
    ]


assets = [review_queue]
