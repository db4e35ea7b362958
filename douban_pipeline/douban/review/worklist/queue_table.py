"""The first videos of the queue as Markdown tables for Dagster's UI, each with links to decide about it.

A link opens the filled-in launchpad of `record_decisions`; nothing happens until a person adds a name and launches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.presentation import Markdown, escaped, panel, subject_link, table
from douban_pipeline.core.ui.tmdb_attribution import attribution_of
from douban_pipeline.douban.links import IGNORED_DAYS, decide
from douban_pipeline.douban.review.records.snapshot import ReviewCandidate, SubjectHolders, holders_of
from douban_pipeline.douban.review.worklist.queue import QueueEntry, ReviewQueue
from douban_pipeline.douban.review.worklist.sheet import held_by_others, item_label, plain, shown_rating
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import WRITING
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching.weights import TIE_BREAK

SHOWN = 16
"""Number of videos in Dagster's UI. Its dialog opens scrolled to the end, and the first should be visible; the sheet
has more."""

_CANDIDATES = 3
_REASON_CHARACTERS = 40


def holders_shown(services: Services, queue: ReviewQueue) -> Mapping[int, SubjectHolders]:
    """Return the holders of the subjects that the tables show."""
    return holders_of(services, {each.douban_id for entry in queue.first[:SHOWN] for each in entry.candidates})


def pressing_table(
    queue: ReviewQueue,
    holders: Mapping[int, SubjectHolders],
    location: str,
    site: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the table of the most pressing videos, with the number of further ones.

    Args:
        queue: The queue.
        holders: Videos that have the shown subjects.
        location: Repository and code location, for links into launchpads.
        site: Addresses of a video's ``page`` and ``player`` with ``{id}`` in them, empty for none.
    """
    first = queue.first[:SHOWN]
    text = table([{**_shown(entry, holders, location), "影片": _on_site(entry, site)} for entry in first], most=SHOWN)
    left = queue.length - len(first)
    notes = [f"这是最要紧的 {len(first)} 部，另有 {left:,} 部待审核。"] if left else []
    return "\n\n".join([text, *notes, *filter(None, [attribution_of(text)])])


def _on_site(entry: QueueEntry, site: Mapping[str, str]) -> Markdown:
    """Return a video's id as a link to its page on the site, and a link to its player, if these are known."""

    def address(name: str) -> str:
        return site.get(name, "").replace("{id}", str(entry.vod_id))

    page = f"[{entry.vod_id}]({address('page')})" if address("page") else str(entry.vod_id)
    return Markdown(f"{page} [▶]({address('player')})" if address("player") else page)


def _shown(entry: QueueEntry, holders: Mapping[int, SubjectHolders], location: str) -> dict[str, object]:
    best = entry.candidates[0] if entry.candidates else None
    held = _held(entry, best, holders) if best else ""
    return {
        "影片": entry.vod_id,
        "片名": _titled(entry.title, entry.year),
        "现有 ID": subject_link(entry.douban_id),
        "首选": _named(best, entry) if best else "",
        "豆瓣评分": _unbroken(shown_rating(best.facts)) if best else "",
        _unbroken("得分 / 领先"): _points(best, entry.lead) if best else "",
        "原因": _short("；".join(filter(None, (_then(entry), held, _own_words(entry.reason, best))))),
        "决定": Markdown(
            " · ".join(f"[{_unbroken(text)}]({launch.path(location)})" for text, launch in links_of(entry, holders))
        ),
    }


def _then(entry: QueueEntry) -> str:
    """Return how the score of the current link changed between both verdicts, as text; empty without both."""
    if entry.both is None:
        return ""
    then, now = (
        "不在候选中" if each.score is None else f"{each.score:.1f}" for each in (entry.both.then, entry.both.now)
    )
    return f"现有关联当时 {then}，现在 {now}"


def _titled(title: str, year: object) -> str:
    return f"{title}（{year}）" if year else title


def _named(candidate: ReviewCandidate, entry: QueueEntry) -> Markdown:
    # Repeating the same title would only wrap the line.
    title = "同名" if candidate.title == entry.title else candidate.title
    return Markdown(f"{subject_link(candidate.douban_id)}\u00a0{escaped(_titled(title, candidate.year or '?'))}")


def _points(best: ReviewCandidate, lead: float | None) -> Markdown:
    return Markdown(_unbroken(f"{best.score:.1f} / {'—' if lead is None else f'{lead:.1f}'}"))


def _own_words(reason: str, best: ReviewCandidate | None) -> str:
    """Return a reason without the part on the best candidate, which has its own columns; the rest is kept."""
    if best is None:
        return reason
    head = f"《{_titled(best.title + '》', best.year or '')}得分 {best.score:.1f}"
    _, _, rest = reason.partition("；")
    return rest if rest and reason.startswith((f"{head}；", f"{head}，领先 ")) else reason


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= _REASON_CHARACTERS else line[: _REASON_CHARACTERS - 1] + "…"


def _held(entry: QueueEntry, candidate: ReviewCandidate, holders: Mapping[int, SubjectHolders]) -> str:
    """Return as text which other videos have a candidate's subject; empty for none."""
    count, others = held_by_others(entry, candidate.douban_id, holders)
    more = f" 等 {count} 部" if count > len(others) else ""
    return f"已关联影片 {'、'.join(map(str, others))}{more}" if count else ""


def _unbroken(text: str) -> str:
    """Return text that never wraps, however narrow its column is."""
    return "\u2060".join(text.replace(" ", "\u00a0"))


def links_of(entry: QueueEntry, holders: Mapping[int, SubjectHolders]) -> Iterator[tuple[str, Launchpad]]:
    """Yield the launches that decide about a video, each with the text of its link."""
    seen = {"verdict_id": entry.verdict_id} if entry.verdict_id else {}
    over = "（CMS 已锁定，仍要写入）" if entry.cms_locked else ""
    if entry.candidates and not entry.stale:
        best, *others = entry.candidates
        # By id, not by rank: it remains the subject that the reviewer saw.
        replaces = entry.locked and entry.douban_id != best.douban_id
        action = DecisionAction.replace_and_lock if replaces else DecisionAction.choose
        # Without accept_conflicts it would be refused; the link's text says that conflicts are accepted.
        held = bool(_held(entry, best, holders))
        meant = {"accept_conflicts": True} if held else {}
        text = ("替换" if held else "替换锁定") if replaces else ("确认" if held else "确认首选")
        yield (
            text + ("并接受冲突" if held else "") + over,
            _launch(entry, action, douban_id=best.douban_id, **meant, **seen),
        )
        if others:
            other = _launch(entry, action, douban_id=others[0].douban_id, **seen)
            yield "选其他…" + over, replace(other, config=other.config + _comments(entry, holders))
    else:
        yield "重新匹配", _launch(entry, DecisionAction.rematch, **seen)
        yield "指定 ID…" + over, _launch(entry, DecisionAction.set_id, douban_id=0)
    yield f"忽略 {IGNORED_DAYS} 天", _launch(entry, DecisionAction.ignore, days=IGNORED_DAYS, **seen)
    if entry.locked:
        yield "解锁", _launch(entry, DecisionAction.unlock_id, **seen)
    elif entry.douban_id:
        yield "清除" + over, _launch(entry, DecisionAction.clear_id, **seen)


def _launch(entry: QueueEntry, action: DecisionAction, **given: Any) -> Launchpad:
    # Without override_cms_lock it would be refused.
    meant = {"override_cms_lock": True} if entry.cms_locked and action in WRITING else {}
    return decide(entry.vod_id, action, dry_run=False, title=entry.title, **{**given, **meant})


def _comments(entry: QueueEntry, holders: Mapping[int, SubjectHolders]) -> str:
    """Return comments after the config that list the candidates' ids, for choosing another one."""
    lines = [
        f"# {each.rank}: {each.douban_id} {plain(each.title)[:30]} ({each.year or '?'}) {_held(entry, each, holders)}"
        for each in entry.candidates
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def candidates_table(queue: ReviewQueue, holders: Mapping[int, SubjectHolders]) -> str:
    """Return the table of the best candidates of the most pressing videos, with their points and conflicts."""
    rows = [
        _candidate(entry, each, holders) for entry in queue.first[:SHOWN] for each in entry.candidates[:_CANDIDATES]
    ]
    return panel(rows, most=_CANDIDATES * SHOWN)


def _candidate(
    entry: QueueEntry, candidate: ReviewCandidate, holders: Mapping[int, SubjectHolders]
) -> Mapping[str, object]:
    return {
        "影片": f"{entry.vod_id} {entry.title}",
        "#": candidate.rank,
        "条目": subject_link(candidate.douban_id),
        "片名": f"{candidate.title}（{candidate.year or '?'}）",
        "豆瓣评分": shown_rating(candidate.facts),
        "得分": candidate.score,
        "各项": " ".join(
            f"{item_label(name)} {points:g}"
            for name, points in candidate.points.items()
            if points > 0 and name != TIE_BREAK
        ),
        "冲突": "；".join(filter(None, (_held(entry, candidate, holders), *candidate.conflicts.values()))),
    }
