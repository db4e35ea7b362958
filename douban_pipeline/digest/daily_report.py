"""The day's report: written by the model, or compiled without it if it does not answer; stored here, sent elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from typing import Any

from sqlalchemy import Connection, Row

from douban_pipeline.core.database import reading, run_patiently
from douban_pipeline.core.ui.presentation import escaped
from douban_pipeline.digest import findings
from douban_pipeline.digest.answers import DigestAnswer
from douban_pipeline.digest.model_calls import Asker, CallsEnded, NoAnswer
from douban_pipeline.digest.prompts import DIGEST_SCHEMA, digest_prompt
from douban_pipeline.digest.rubrics import RubricError
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.slots import SKEW, SlotKey, missed_slots
from douban_pipeline.digest.store import analyses, reports, slots
from douban_pipeline.digest.types import DayOutcome, DayStats, Finding, ReportState, SlotStatus

logger = logging.getLogger(__name__)

MODEL_TIME = timedelta(minutes=5)
"""How long after its begin a report starts no further call of the model."""
_MOST_TOLD = 100
"""Maximum number of analyses passed to the model, best first."""
_MOST_TOP = 3
_LONGEST_BODY = 1500
FAILED_TEXT = "日报生成失败，请稍后刷新"


@dataclass(frozen=True, slots=True)
class DayData:
    """Input of a day's report."""

    day: date
    rows: Sequence[Row[Any]]
    findings: Sequence[Finding]
    failures: Sequence[Row[Any]]
    opportunities: Mapping[int, Sequence[Row[Any]]]
    problems: Sequence[str]
    stats: DayStats


@dataclass(frozen=True, slots=True)
class MadeReport:
    """A stored report, with title and text of its message."""

    state: ReportState
    reason: str
    title: str
    body: str
    stats: DayStats
    digest: Mapping[str, Any] = field(default_factory=dict)


def day_data(services: DigestServices, day: date, ending: str = "") -> DayData:
    """Return the data of a day: the analyses of its slots, and the failures.

    Args:
        services: The services.
        day: The day.
        ending: The slot that succeeds with the report, and is not stored as a success yet.
    """
    settings = services.settings
    # The last slot may end after midnight: a day ends where the next one's first slot may begin.
    first = (SlotKey(each, settings.schedule_slots[0]) for each in (day, day + timedelta(days=1)))
    begin, end = (slot.scheduled_at(settings.zone) - SKEW for slot in first)
    with reading(services.engine) as connection:
        rows = analyses.of_day(connection, day)
        failures = analyses.failures_of_day(connection, begin, end)
        runs = slots.of_day(connection, day)
        found = findings.reaching(analyses.as_findings(rows), settings.push_score_threshold)
        opportunities = analyses.opportunities_of(connection, [row.analysis_id for row in rows])
        articles = analyses.articles_of_day(connection, day)
        waiting = analyses.waiting_of_day(connection, day)
    done = tuple(run.slot for run in runs if run.status is SlotStatus.SUCCESS or run.slot == ending)
    missed = missed_slots(day, settings.schedule_slots, [run.slot for run in runs], services.now(), settings.zone)
    problems = [f"{run.slot}：{run.error}" for run in runs if run.error]
    problems = sorted([*problems, *(f"{slot}：没有运行" for slot in missed)])
    best = max((row.score for row in rows), default=None)
    unread = tuple(run.slot for run in runs if run.counters.get("ingest_failed"))
    doubtful = sum(bool(each.suspicions) for each in found)
    withheld = sum(bool(row.suspicions) for row in rows) - doubtful
    numbers = (articles, len(rows), len(found), len(failures), best, done, waiting, doubtful, unread, missed, withheld)
    return DayData(day, rows, found, failures, opportunities, problems, DayStats(*numbers))


def make_report(
    services: DigestServices, day: date, *, use_model: bool = True, problems: Sequence[str] = (), ending: str = ""
) -> MadeReport:
    """Make a day's report and store it, replacing a previous one.

    Args:
        services: The services.
        day: The day.
        use_model: Whether the model may be called; without it the report is compiled from the stored data.
        problems: Further problems besides those stored with the slots, as sentences.
        ending: See `day_data`.
    """
    data = day_data(services, day, ending)
    answer, why_plain, wire_model = (None, "", "")
    if data.rows and use_model:
        answer, why_plain, wire_model = _written(services, data)
    elif data.rows:
        why_plain = "本时段的模型调用已停止"
    digest = _digest(services, data, answer, [*data.problems, *problems])
    state = ReportState.GOOD if answer is not None or not data.rows else ReportState.PLAIN
    if findings.outcome_of(data.stats) is DayOutcome.UNREAD:
        state = ReportState.UNREAD
    made = MadeReport(
        state,
        why_plain,
        findings.report_title(day.isoformat(), data.stats),
        _body(digest),
        data.stats,
        digest,
    )
    _store(services, day, made, services.settings.deepseek_model if answer is not None else "", wire_model)
    return made


def failed_report(services: DigestServices, day: date, causes: Sequence[str]) -> MadeReport:
    """Store that a day's report could not be made, with the causes and the errors of its slots.

    An existing report is kept. Nothing is counted: what could not be made is no report of zero articles.
    """
    every = [*dict.fromkeys((*causes, *_slot_errors(services, day)))]
    title = f"【日报】{day.isoformat()}：{FAILED_TEXT}"
    body = "\n".join([FAILED_TEXT, *every])
    stats = DayStats(0, 0, 0, 0, None, ())
    made = MadeReport(ReportState.FAILED, "\n".join(every), title, _cut(body), stats, {"causes": every})
    _store(services, day, made, "", "")
    return made


def _slot_errors(services: DigestServices, day: date) -> list[str]:
    """Return the errors of a day's slots; none where they cannot be read, which may be why there is no report."""
    try:
        with reading(services.engine) as connection:
            return [f"{run.slot}：{run.error}" for run in slots.of_day(connection, day) if run.error]
    except Exception:
        logger.exception("the slots of %s cannot be read", day)
        return []


def _store(services: DigestServices, day: date, made: MadeReport, model: str, wire_model: str) -> None:
    stats = made.stats
    numbers = {
        "articles": stats.articles,
        "analyses": stats.analyses,
        "opportunities": stats.findings,
        "failures": stats.failures,
        "best_score": stats.best_score,
    }

    def store(connection: Connection) -> None:
        reports.store(
            connection,
            day,
            state=made.state,
            reason=made.reason,
            digest_md=str(made.digest.get("digest_md", "")),
            digest=made.digest,
            slots_done=stats.slots_done,
            stats=numbers,
            model=model,
            wire_model=wire_model,
            now=services.now(),
        )

    run_patiently(services.engine, store, services.clock)


def _written(services: DigestServices, data: DayData) -> tuple[DigestAnswer | None, str, str]:
    """Return the model's digest, the reason if there is none, and the model that wrote it."""
    deadline = services.now() + MODEL_TIME
    try:
        prompt = digest_prompt(
            services.rubric, data.day.isoformat(), [*map(_compact(services, data), data.rows[:_MOST_TOLD])]
        )
        answered = Asker(services, deadline, Random()).ask("digest", prompt, DIGEST_SCHEMA, f"digest {data.day}")
    except (CallsEnded, NoAnswer, RubricError) as error:
        return None, str(error), ""
    return DigestAnswer.model_validate(answered.completion.content), "", answered.completion.model


def _compact(services: DigestServices, data: DayData) -> Any:
    def compact(row: Row[Any]) -> dict[str, Any]:
        own = data.opportunities.get(row.analysis_id, ())
        return {
            "analysis_id": row.analysis_id,
            "title": row.title,
            "mp_name": row.mp_name,
            "published_at": row.published_at.isoformat() if row.published_at else None,
            "score": row.score,
            "has_opportunity": row.has_opportunity,
            "top_type": own[0].type if own else "",
            "summary": row.summary,
            "analysis_url": services.analysis_address(row.analysis_id),
            "opportunities_brief": [each.title for each in own[:_MOST_TOP]],
        }

    return compact


def _digest(
    services: DigestServices, data: DayData, answer: DigestAnswer | None, problems: Sequence[str]
) -> dict[str, Any]:
    """Return the report's JSON: the model's, checked against the stored data, or its replacement."""
    known = {row.analysis_id for row in data.rows}
    top = [
        {"title": each.title, "score": each.score, "analysis_id": each.analysis_id, "reason": each.summary}
        for each in data.findings[:_MOST_TOP]
    ]
    if answer is not None:
        chosen = [each.model_dump() for each in answer.top_opportunities if each.analysis_id in known]
        top = chosen[:_MOST_TOP] or top
    return {
        "headline": findings.headline(data.stats),
        "coverage": findings.coverage(data.stats),
        "has_opportunity": bool(data.findings),
        "top_opportunities": top,
        "digest_md": answer.digest_md if answer is not None else plain_digest(data),
        "watchlist": answer.watchlist if answer is not None else [],
        "stats": {
            "analyses": data.stats.analyses,
            "opportunities": data.stats.findings,
            "failures": data.stats.failures,
            "best_score": data.stats.best_score,
        },
        "failures": [
            {"title": row.title, "mp_name": row.mp_name, "url": row.url, "error": row.analysis_error}
            for row in data.failures
        ],
        "suspicious": [
            {"analysis_id": each.analysis_id, "title": each.title, "suspicions": [*each.suspicions]}
            for each in analyses.as_findings(data.rows)
            if each.suspicions
        ],
        "problems": [*problems],
        "by_model": answer is not None,
    }


def plain_digest(data: DayData) -> str:
    """Return a day's digest in Markdown without the model: its analyses by score; empty without any."""
    found = {each.analysis_id: findings.marked(each) for each in data.findings}
    lines = []
    for row in data.rows:
        mark = found.get(row.analysis_id, findings.WITHHELD if row.suspicions else "")
        lines.append(f"- **{row.score}** {mark}{escaped(row.title)}（{escaped(row.mp_name)}）：{escaped(row.summary)}")
    return "\n".join(lines)


def _body(digest: Mapping[str, Any]) -> str:
    lines = [digest["headline"], digest["coverage"]]
    doubtful = {each["analysis_id"] for each in digest["suspicious"]}
    for each in digest["top_opportunities"]:
        mark = findings.DOUBTFUL if each["analysis_id"] in doubtful else ""
        lines.append(f"{mark}{each['score']} 分 · {each['title']}")
    lines += [f"⚠ {problem}" for problem in digest["problems"]]
    return _cut("\n".join(lines))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_BODY else text[:_LONGEST_BODY] + "…"
