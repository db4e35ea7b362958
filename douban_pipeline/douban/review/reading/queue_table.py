"""The first of the queue as tables of Markdown for Dagster's UI, each video with links that settle it.

A link opens the launchpad of `record_decisions` filled in; nothing happens until a person adds a name and launches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from douban_pipeline.core.ui.launchpad_links import Launchpad
from douban_pipeline.core.ui.presentation import Markdown, escaped, panel, subject_link, table
from douban_pipeline.douban.links import IGNORED_DAYS, decide
from douban_pipeline.douban.review.reading.queue import QueueEntry, ReviewQueue
from douban_pipeline.douban.review.reading.sheet import held_by_others, item_label, plain, shown_rating
from douban_pipeline.douban.review.recording.snapshot import ReviewCandidate, SubjectHolders, holders_of
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.decisions import WRITING
from douban_pipeline.douban.store.states import DecisionAction
from douban_pipeline.matching.scoring import TIE_BREAK

SHOWN = 16
"""Videos in Dagster's UI, whose dialog opens scrolled to its end: the first should be in sight. More on the sheet."""

_CANDIDATES = 3
_REASON_CHARACTERS = 40


def holders_shown(services: Services, queue: ReviewQueue) -> Mapping[int, SubjectHolders]:
    """Return which videos have the subjects that the tables show."""
    return holders_of(services, {each.douban_id for entry in queue.first[:SHOWN] for each in entry.candidates})


def pressing_table(
    queue: ReviewQueue,
    holders: Mapping[int, SubjectHolders],
    location: str,
    site: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the most pressing videos, and say how many more are on the sheet, and how many on none.

    Args:
        queue: What waits.
        holders: Which videos have the subjects that are shown.
        location: Repository and code location, for links into launchpads.
        site: Addresses of a video's ``page`` and ``player`` with ``{id}`` in them, empty for none.
    """
    first = queue.first[:SHOWN]
    text = table([{**_shown(entry, holders, location), "影片": _on_site(entry, site)} for entry in first], most=SHOWN)
    on_sheet, left = len(queue.first) - len(first), queue.length - len(first)
    notes = [f"这是最要紧的 {len(first)} 部，另有 {left:,} 部待审核"] if left else []
    notes += [f"{'' if on_sheet == left else f'其中 {on_sheet:,} 部'}见审核单（sheet）"] if on_sheet else []
    return text + (f"\n\n{'，'.join(notes)}。" if notes else "")


def _on_site(entry: QueueEntry, site: Mapping[str, str]) -> Markdown:
    """Return a video's number as a link to its page on the site, and a link to its player, where these are known."""

    def address(name: str) -> str:
        return site.get(name, "").replace("{id}", str(entry.vod_id))

    page = f"[{entry.vod_id}]({address('page')})" if address("page") else str(entry.vod_id)
    return Markdown(f"{page} [▶]({address('player')})" if address("player") else page)


def _shown(entry: QueueEntry, holders: Mapping[int, SubjectHolders], location: str) -> dict[str, object]:
    best = entry.candidates[0] if entry.candidates else None
    held = _held(entry, best, holders) if best else ""
    return {
        "影片": entry.vod_id,
        "片名": _titled(entry.title, entry.year if entry.year != "0" else ""),
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
    """Say how the score of the current link changed between both verdicts; empty where there are not two."""
    if entry.both is None:
        return ""
    then, now = (
        "不在候选中" if each.score is None else f"{each.score:.1f}" for each in (entry.both.then, entry.both.now)
    )
    return f"现有关联当时 {then}，现在 {now}"


def _titled(title: str, year: object) -> str:
    return f"{title}（{year}）" if year else title


def _named(candidate: ReviewCandidate, entry: QueueEntry) -> Markdown:
    # The same title twice in a row only breaks the lines.
    title = "同名" if candidate.title == entry.title else candidate.title
    return Markdown(f"{subject_link(candidate.douban_id)}\u00a0{escaped(_titled(title, candidate.year or '?'))}")


def _points(best: ReviewCandidate, lead: float | None) -> Markdown:
    return Markdown(_unbroken(f"{best.score:.1f} / {'—' if lead is None else f'{lead:.1f}'}"))


def _own_words(reason: str, best: ReviewCandidate | None) -> str:
    """Return a reason without what the columns say of the best candidate; what it says of another stays."""
    if best is None:
        return reason
    head = f"《{_titled(best.title + '》', best.year or '')}得分 {best.score:.1f}"
    _, _, rest = reason.partition("；")
    return rest if rest and reason.startswith((f"{head}；", f"{head}，领先 ")) else reason


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= _REASON_CHARACTERS else line[: _REASON_CHARACTERS - 1] + "…"


def _held(entry: QueueEntry, candidate: ReviewCandidate, holders: Mapping[int, SubjectHolders]) -> str:
    """Say which other videos have a candidate's subject; empty for none."""
    count, others = held_by_others(entry, candidate.douban_id, holders)
    more = f" 等 {count} 部" if count > len(others) else ""
    return f"已关联影片 {'、'.join(map(str, others))}{more}" if count else ""


def _unbroken(text: str) -> str:
    """Return text in which no line ends, however narrow its column is."""
    return "\u2060".join(text.replace(" ", "\u00a0"))


def links_of(entry: QueueEntry, holders: Mapping[int, SubjectHolders]) -> Iterator[tuple[str, Launchpad]]:
    """Yield the launches that settle a video, each with the text of its link."""
    seen = {"verdict_id": entry.verdict_id} if entry.verdict_id else {}
    over = "（CMS 已锁定，仍要写入）" if entry.cms_locked else ""
    if entry.candidates and not entry.stale:
        best, *others = entry.candidates
        # An id is surer than a rank: it stays what the reviewer saw.
        replaces = entry.locked and entry.douban_id != best.douban_id
        action = DecisionAction.replace_and_lock if replaces else DecisionAction.choose
        # Refused unless it is meant: the link says that it is.
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
    # Refused unless it is meant, like a conflict.
    meant = {"override_cms_lock": True} if entry.cms_locked and action in WRITING else {}
    return decide(entry.vod_id, action, dry_run=False, title=entry.title, **{**given, **meant})


def _comments(entry: QueueEntry, holders: Mapping[int, SubjectHolders]) -> str:
    """Return comments behind the config that say which id is which, for whoever puts another one in."""
    lines = [
        f"# {each.rank}: {each.douban_id} {plain(each.title)[:30]} ({each.year or '?'}) {_held(entry, each, holders)}"
        for each in entry.candidates
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def candidates_table(queue: ReviewQueue, holders: Mapping[int, SubjectHolders]) -> str:
    """Return the best candidates of the most pressing videos, with what earns them points and what speaks against."""
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
