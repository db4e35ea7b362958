"""A video's history as a page in Dagster's UI: its current state, then what happened, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from douban_pipeline.cms.maccms import in_recycle_bin
from douban_pipeline.cms.numbers import moment_of
from douban_pipeline.cms.values import readable
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.ui.launchpad_links import launch_link
from douban_pipeline.core.ui.presentation import Markdown, escaped, local_time, subject_link
from douban_pipeline.douban import links
from douban_pipeline.douban.intros.proofs import stored_statements
from douban_pipeline.douban.store.decisions import LINKING
from douban_pipeline.douban.store.shown_status import shown_status
from douban_pipeline.douban.store.states import ChangeState, DecisionAction
from douban_pipeline.douban.undo.history import EMPTY, Event, History, described_changes, shown
from douban_pipeline.douban.wording import (
    CHANGE_STATES,
    CHANGES,
    DECISION_STATES,
    ID_SOURCES,
    INTRO_STATES,
    OPERATORS,
    REVIEW_STATUSES,
    SOURCE_NAMES,
    TASK_STATUSES,
    TASK_TYPES,
    VERDICT_STATES,
    VERDICTS,
    word_for,
)
from douban_pipeline.douban.writes.changes import BY_CMS, PIPELINE, SEEN_IN_CMS, decode

_CMS = ("vod_year", "vod_area", "vod_lang", "vod_class", "vod_director", "vod_actor", "vod_content")
"""CMS columns that are shown beside the id, the score and the locks."""


def history_page(histories: Iterable[History], zone: ZoneInfo, location: str) -> str:
    """Return the histories as Markdown, a chapter a video."""
    return "\n\n".join(chapter(history, zone, location) for history in histories)


def chapter(history: History, zone: ZoneInfo, location: str) -> str:
    """Return the history of one video."""
    if not history.known:
        return f"## 影片 {history.vod_id}\n\n没有这部影片：CMS、状态表和日志中都没有它。"
    title = escaped(readable(history.row["vod_name"])) if history.row else "（已从 CMS 中删除）"
    lines = [f"## 影片 {history.vod_id} {title}", *_now(history, zone, location), "### 经过（新的在前）"]
    if not history.events:
        lines.append("还没有任何判定、决定或写入。")
    entries = [_event(event, zone, location) for event in history.events]
    lines.append("\n".join(entries))
    if history.left_out:
        lines.append(f"更早的还有 {history.left_out} 条；只看这一部影片可以显示更多。")
    return "\n\n".join(line for line in lines if line)


def _now(history: History, zone: ZoneInfo, location: str) -> Iterator[str]:
    """Yield the current state of the video."""
    facts: list[tuple[str, str]] = []
    row, state = history.row, history.state
    if row is not None:
        facts.append(("CMS 豆瓣 ID", subject_link(row["vod_douban_id"]) or EMPTY))
        facts.append(("CMS 豆瓣评分", f"{row['vod_douban_score']}"))
        facts.append(("CMS 更新", local_time(moment_of(row["vod_time"]), zone)))
        if row["vod_lock"]:
            facts.append(("CMS 锁定", "是（vod_lock）"))
        if in_recycle_bin(row):
            facts.append(("回收站", "是"))
    if state is not None:
        facts += list(_state_facts(state, zone))
    if history.chosen:
        facts.append(("人工选定", subject_link(history.chosen)))
    facts += [
        (
            "任务",
            escaped(
                f"{word_for(TASK_TYPES, task['task_type'])}，{word_for(TASK_STATUSES, task['status'])}，"
                f"{local_time(task['run_after'], zone)} 起，失败 {task['attempts']} 次"
                + (f"：{failure_text(task['last_error'], SOURCE_NAMES)}" if task["last_error"] else "")
            ),
        )
        for task in history.tasks
    ]
    yield "\n".join(f"- {name}：{value}" for name, value in facts)
    if row is not None:
        yield "\n".join(f"- {column}：{escaped(shown(row[column], zone))}" for column in _CMS)
    step = launch_link("撤销最近一步", links.revert(vod_ids=[history.vod_id]), location)
    rematch = links.decide(history.vod_id, DecisionAction.rematch, dry_run=True)
    ways = [step, launch_link("重新匹配", rematch, location)]
    yield " · ".join(way for way in ways if way)


def _state_facts(state: Mapping[Any, Any], zone: ZoneInfo) -> Iterator[tuple[str, str]]:
    reason = f"（{state['douban_review_reason']}）" if state["douban_review_reason"] else ""
    yield "状态", escaped(word_for(REVIEW_STATUSES, shown_status(state)) + reason)
    if state["douban_ignore_until"] is not None:
        yield "忽略至", local_time(state["douban_ignore_until"], zone)
    source = word_for(ID_SOURCES, state["douban_id_source"])
    yield "关联", Markdown(f"{subject_link(state['vod_douban_id']) or EMPTY}（来源：{escaped(source)}）")
    for name, lock, since in (
        ("豆瓣 ID 锁定", "douban_id_locked", "douban_id_lock_time"),
        ("简介锁定", "intro_locked", "intro_lock_time"),
    ):
        when = local_time(state[since], zone)
        yield name, (f"是{f'（{when}）' if when else ''}" if state[lock] else "否")
    yield "上次处理", local_time(state["douban_last_sync_at"], zone) or "从未"
    yield "下次处理", local_time(state["douban_next_sync_at"], zone) or "不再处理"
    for name, count, at, why in (
        ("豆瓣失败", "douban_sync_fail_count", "douban_last_fail_at", "douban_last_fail_reason"),
        ("简介失败", "intro_ai_fail_count", "intro_ai_last_fail_at", "intro_ai_last_fail_reason"),
    ):
        if state[count] or state[why]:
            yield name, escaped(f"连续 {state[count]} 次，{local_time(state[at], zone)}：{state[why]}")


def _event(event: Event, zone: ZoneInfo, location: str) -> str:
    head, details = _DESCRIBE[event.kind](event, zone, location)
    lines = [f"- **{local_time(event.at, zone)}** {head}"]
    lines += [f"  - {detail}" for detail in details if detail]
    return "\n".join(lines)


def _verdict(event: Event, zone: ZoneInfo, location: str) -> tuple[str, list[str]]:
    row = event.row
    score = "" if row["score"] is None else f"，得分 {row['score']:.1f}"
    lead = "" if row["lead"] is None else f"，领先 {row['lead']:.1f}"
    subject = f" → {subject_link(row['douban_id'])}" if row["douban_id"] else ""
    head = f"判定 {row['verdict_id']}：{escaped(word_for(VERDICTS, row['verdict']))}{subject}{score}{lead}"
    rests_on = f"规则 {row['rule_version']}，方案 {row['profile']}，依据存档应答 {len(row['snapshots'] or ())} 份"
    state = f"{word_for(VERDICT_STATES, row['state'])}{_reason_suffix(row['state_reason'])}"
    details: list[str] = [escaped(row["explanation"]), escaped(f"{state}；{rests_on}，运行 {row['run_id']}")]
    for candidate in event.candidates:
        against = "；".join((candidate["conflicts"] or {}).values())
        year = f"（{candidate['year']}）" if candidate["year"] else ""
        details.append(
            f"候选 {candidate['rank']}：{escaped(candidate['title'])}{year} {subject_link(candidate['douban_id'])}"
            f" {candidate['score']:.1f} 分{'' if candidate['fetched'] else '（仅搜索结果）'}"
            + (f"，不符：{escaped(against)}" if against else "")
        )
    return head, details


def _decision(event: Event, zone: ZoneInfo, location: str) -> tuple[str, list[str]]:
    row = event.row
    # The subject it names, or the one that it was about.
    arrow = " → " if row["action"] in LINKING else " "
    subject = f"{arrow}{subject_link(row['douban_id'])}" if row["douban_id"] else ""
    also = [
        text
        for text, given in (
            ("并锁定", row["lock"]),
            (f"{row['days']} 天", row["days"]),
            ("接受冲突", row["accept_conflicts"]),
            ("写入 CMS 锁定的行", row["override_cms_lock"]),
        )
        if given
    ]
    more = f"（{'，'.join(also)}）" if also else ""
    undo = links.revert(reviewer=row["reviewer"], reason=links.UNDONE, decision_ids=[row["decision_id"]])
    what = escaped(word_for(CHANGES, row["action"]))
    head = f"决定 {row['decision_id']}：{escaped(row['reviewer'])} {what}{subject}{more}"
    settled = f"，{local_time(row['settled_at'], zone)}" if row["settled_at"] else ""
    return head, [
        escaped(row["note"]),
        escaped(f"{word_for(DECISION_STATES, row['state'])}{settled}{_reason_suffix(row['state_reason'])}"),
        escaped(f"决定批次 {row['batch_id'] or EMPTY}，运行 {row['run_id']}"),
        launch_link("撤销此决定写入的一切", undo, location),
    ]


def _signed(operator: str) -> dict[str, str]:
    """Return who wrote as who reverts, where that is a person: most often it is the same one who sees the mistake."""
    return {} if operator == PIPELINE else {"reviewer": operator, "reason": links.UNDONE}


def _change(event: Event, zone: ZoneInfo, location: str) -> tuple[str, list[str]]:
    row = event.row
    old, new = decode(row["old_values"]), decode(row["new_values"])
    state_old, state_new = decode(row["state_old"]), decode(row["state_new"])
    by = word_for(OPERATORS, row["operator"])
    state = f"{word_for(CHANGE_STATES, row['state'])}{_reason_suffix(row['state_reason'])}"
    head = f"变更 {row['change_id']}：{escaped(by)} {escaped(word_for(CHANGES, row['action']))}，{escaped(state)}"
    ours = [name for name, value in state_new.items() if state_old.get(name) != value]
    details: list[str] = [escaped(row["reason"])]
    details += [escaped(text) for text in described_changes(old, new, new, zone)]
    details += [escaped(f"状态 {text}") for text in described_changes(state_old, state_new, ours, zone)]
    if row["reverts_change_id"] is not None:
        details.append(f"撤销的是变更 {row['reverts_change_id']}")
    if event.reverted_by:
        details.append(f"撤销它的变更：{'、'.join(map(str, event.reverted_by))}")
    if row["batch_id"] == SEEN_IN_CMS:
        origin = ["在 CMS 后台所做，此处只作记录"] if row["operator"] == BY_CMS else ["对 CMS 中一并被清空的 ID 的回答"]
    else:
        origin = [f"批次 {row['batch_id']}", f"运行 {row['run_id']}", f"规则 {row['rule_version']}"]
    for words, name in (("决定", "decision_id"), ("判定", "verdict_id"), ("存档应答", "snapshot_id")):
        if row[name] is not None:
            origin.append(f"{words} {row[name]}")
    details.append(escaped("，".join(origin)))
    if row["state"] == ChangeState.APPLIED:
        details.append(
            launch_link("撤销此变更", links.revert(**_signed(row["operator"]), change_ids=[row["change_id"]]), location)
        )
    return head, details


def _intro(event: Event, zone: ZoneInfo, location: str) -> tuple[str, list[str]]:
    row = event.row
    subject = subject_link(row["douban_id"]) or EMPTY
    state = f"{word_for(INTRO_STATES, row['state'])}{_reason_suffix(row['reason'])}"
    head = f"简介 {row['intro_id']}（依据条目 {subject}）：{escaped(state)}"
    violations = row["violations"] or ()
    cost = f"{row['cost_usd']:.6f} 美元，{row['prompt_tokens'] + row['completion_tokens']} 个 token"
    change = f"，变更 {row['change_id']}" if row["change_id"] is not None else ""
    return head, [
        escaped(f"模型 {row['model'] or EMPTY}，{cost}，提示词 {row['prompt_version']}{change}，运行 {row['run_id']}"),
        escaped(f"核对指出 {len(violations)} 处问题") if violations else "",
        escaped(_read_again(row)) if row["reading"] else "",
    ]


def _read_again(row: Mapping[str, Any]) -> str:
    statements = list(stored_statements(row["reading"], row["intro_text"] or ""))
    passages = dict.fromkeys(passage for each in statements for passage in each.passages)
    by = f"（{row['reader']}）" if row["reader"] else ""
    return f"复核{by} {len(statements)} 条，所引原文：{'；'.join(f'“{passage}”' for passage in passages) or EMPTY}"


def _failure(event: Event, zone: ZoneInfo, location: str) -> tuple[str, list[str]]:
    row = event.row
    return f"任务失败：{escaped(word_for(TASK_TYPES, row['task_type']))}", [
        escaped(failure_text(row["last_error"], SOURCE_NAMES)),
        escaped(f"任务 {row['task_id']}，失败 {row['attempts']} 次，运行 {row['run_id']}"),
    ]


def _reason_suffix(reason: str) -> str:
    return f"（{reason}）" if reason else ""


_DESCRIBE: Mapping[str, Callable[[Event, ZoneInfo, str], tuple[str, list[str]]]] = {
    "verdict": _verdict,
    "decision": _decision,
    "change": _change,
    "intro": _intro,
    "failure": _failure,
}
