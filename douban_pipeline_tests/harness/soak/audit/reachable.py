"""Whether every video of the CMS is known, and comes up again some day or is paused for a reason."""

from __future__ import annotations

from datetime import timedelta

from douban_pipeline_tests.harness.soak.audit.found import Case
from douban_pipeline_tests.harness.soak.audit.records import Records, moment
from douban_pipeline_tests.harness.soak.evidence import Evidence, Finding

_LONGEST = timedelta(days=400)


def every_video_is_reachable(evidence: Evidence, records: Records) -> Finding:
    """Check every row of the CMS against our states; the library was swept after the last outsider left."""
    case = Case("every video in the CMS is known, and has a next visit or a reason not to have one")
    names = {name for name in ("vod_recycle_time",) if name in evidence.initial.columns}
    columns = ", ".join(("vod_id", "type_id", "vod_douban_id", *sorted(names)))
    resting = 0
    last = 0
    while page := records.rows(
        f"SELECT {columns} FROM {{cms}}vod WHERE vod_id > :last ORDER BY vod_id LIMIT 5000",
        last=last,
    ):
        last = page[-1]["vod_id"]
        for row in page:
            case.checked += 1
            state = records.states.get(row["vod_id"])
            if state is None:
                case.undone(f"video {row['vod_id']} was never taken in", evidence.drained)
                continue
            visit = moment(state["douban_next_sync_at"])
            if visit is not None:
                if visit > evidence.ended + _LONGEST:
                    case.breaks(f"video {row['vod_id']} is next visited at {visit:%Y-%m-%d}")
                continue
            resting += 1
            forever = state["douban_review_status"] == "IGNORED" and state["douban_ignore_until"] is None
            if not row.get("vod_recycle_time") and not forever:
                status = f"{state['douban_review_status']}: {state['douban_review_reason']}"
                case.breaks(f"video {row['vod_id']} has no next visit, and stands in the CMS as any other ({status})")
    for vod_id, state in records.states.items():
        if state["shard"] != vod_id % 64:
            case.breaks(f"video {vod_id} is held by shard {state['shard']}, where nobody looks for it")
    case.notes.append(f"{resting} rest: in the recycle bin, or ignored for good")
    return case.finding()
