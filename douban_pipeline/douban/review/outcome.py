"""What a launch of decisions tells in the end, the same for every job that records any: a table, or a failure."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import subject_link, table
from douban_pipeline.dagster_kit.launchpad import location_of
from douban_pipeline.douban import links
from douban_pipeline.douban.review.recording.wishes import Recorded, Recording, Result
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import WORDS

_SHOWN = 500
_IN_MESSAGE = 30
_EVERY = timedelta(seconds=10)
_ORDER: tuple[Result, ...] = ("refused", "recorded", "checked", "already", "known")
_WORDS: dict[Result, str] = {
    "refused": "拒绝",
    "recorded": "已记录",
    "checked": "仅检查，可以记录",
    "already": "无需记录",
    "known": "无需记录",
}


def recorded_table(recording: Recording) -> str:
    """Return what became of each row as a Markdown table, refused rows first."""
    items = sorted(recording.items, key=lambda item: (_ORDER.index(item.outcome), not item.unchecked))
    return table([_shown(item) for item in items], most=_SHOWN)


def _shown(item: Recorded) -> dict[str, object]:
    return {
        "行": item.wish.where,
        "影片": item.wish.vod_id,
        "片名": item.title,
        "决定": f"{item.wish.action} {WORDS[item.wish.action]}",
        "条目": subject_link(item.douban_id),
        "锁定": "是" if item.wish.lock else "",
        "结果": _WORDS[item.outcome],
        "说明": item.reason,
    }


def teller(context: dg.OpExecutionContext, services: Services, total: int) -> Callable[[int], None]:
    """Return what tells the run's log every few seconds how many of ``total`` rows are settled."""
    last = services.clock.now()

    def tell(done: int) -> None:
        nonlocal last
        now = services.clock.now()
        if now - last >= _EVERY:
            last = now
            context.log.info(f"{done} of {total} rows settled")

    return tell


def waits(services: Services) -> dict[str, str]:
    """Return what to know where nothing is carried out for now."""
    if not services.settings.dry_run:
        return {}
    return {"waits": "DOUBAN_PIPELINE_DRY_RUN=true：决定先记录，关闭演练模式之后才执行"}


def _undo(batch_id: str, location: str) -> dg.MetadataValue:
    """Return a link to the job that takes a batch back; it first only shows, and a person adds name and reason."""
    return dg.MetadataValue.md(launch_link("撤销这一批", links.revert(batch_id=batch_id), location))


def conclude(
    context: dg.OpExecutionContext, recording: Recording, dry_run: bool, refusals: Sequence[str] = (), **more: Any
) -> None:
    """Tell what became of a launch.

    Args:
        context: The run.
        recording: What became of the rows.
        dry_run: Whether nothing was to be recorded.
        refusals: A sentence for each refusal, where a job has others than the recording's.
        more: Further metadata of the job.

    Raises:
        Failure: Some rows were refused. The good ones are recorded by then, and the failure says so.
    """
    refused = list(refusals) or [item.sentence for item in recording.of("refused")]
    good = recording.of("checked" if dry_run else "recorded")
    known, unchecked = len(recording.of("known", "already")), sum(item.unchecked for item in recording.items)
    written = bool(good) and not dry_run
    location = location_of(context.run) or links.LOCATION
    rest = {"refused": len(refused), "known": known, "unchecked": unchecked, **more}
    # A run's page shows the first lines only: what people look at, what they click, and no counts that say nothing.
    metadata: dict[str, Any] = {
        "decisions": dg.MetadataValue.md(recorded_table(recording)),
        **({"undo": _undo(recording.batch_id, location), "batch": recording.batch_id} if written else {}),
        "recorded": len(good) if written else 0,
        **{name: value for name, value in rest.items() if value not in (0, "")},
        "dry_run": dry_run,
    }
    context.log.info(
        f"{len(good)} decisions {'could be recorded' if dry_run else 'recorded'}, {len(refused)} refused, "
        f"{known} known, {unchecked} unchecked"
    )
    if refused:
        said = f"仅检查：{len(good)} 条可以记录" if dry_run else f"已记录 {len(good)} 条"
        lines = [f"- {sentence}" for sentence in refused[:_IN_MESSAGE]]
        if len(refused) > len(lines):
            lines.append(f"- …… 其余 {len(refused) - len(lines)} 条见表 decisions")
        description = "\n".join([f"{said}，拒绝 {len(refused)} 条", *lines])
        raise dg.Failure(description, metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)
