"""Tables of the list of intros: what proves each text, what was cut or refused and why, and where intros come from.

A text stands beside its source, with the passage of each statement marked by the statement's number. Proofs that were
stored in the form of an earlier reading, sentence by sentence, are shown as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, func, select

from douban_pipeline.core.clock import day_of, midnight
from douban_pipeline.core.ui.lists.list_page import ColumnKind, ListColumn, ListLink, Piece, Row, Table
from douban_pipeline.douban import links
from douban_pipeline.douban.intros.proofs import Statement, stored_statements
from douban_pipeline.douban.reports.lists.intro_figures import DAYS
from douban_pipeline.douban.reports.lists.lookup import names_of
from douban_pipeline.douban.reports.lists.videos import ACTIONS, LABEL, NAME, NUMBER, TIME, VOD_ID, common_links
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.store.states import IntroState

MOST_PROOFS = 100
"""Most texts that are listed with their proof, the newest: each takes some two kilobytes of the page."""

_OUTCOMES = {
    IntroState.WRITTEN: "已写入",
    IntroState.PREVIEW: "仅预览",
    IntroState.WITHDRAWN: "已撤销",
    IntroState.REFUSED: "未通过",
    IntroState.FAILED: "未完成",
}
_BASES = {"facts": "资料", "general": "泛述", "synopsis": "", "none": "无"}
_PLACEHOLDER = "ORIGIN"
_NO_READER = "（未记录）"


def text_pieces(statements: Sequence[Statement]) -> tuple[Piece, ...]:
    """Return a text with its statements numbered: wrong what has no basis, struck out what was cut."""
    pieces: list[Piece] = []
    for number, each in enumerate(statements, start=1):
        tone = " ".join(filter(None, ("bad" if each.problem else "", "gone" if each.cut else "")))
        basis = _BASES.get(each.basis, "")
        pieces.append(Piece(each.text, f"{number} {basis}".strip(), tone))
        last = number == len(statements) or statements[number].sentence != each.sentence
        pieces.append(Piece("。" if last else "，"))
    return tuple(pieces)


def source_pieces(source: str, statements: Sequence[Statement]) -> tuple[Piece, ...]:
    """Return a source with the passages marked by the numbers of the statements that they prove."""
    marks: dict[int, set[int]] = {}
    for number, each in enumerate(statements, start=1):
        for passage in each.passages:
            at = source.find(passage)
            for place in range(at, at + len(passage)) if at >= 0 and passage else ():
                marks.setdefault(place, set()).add(number)
    pieces: list[Piece] = []
    begin = 0
    for end in range(1, len(source) + 1):
        if end == len(source) or marks.get(end) != marks.get(begin):
            numbers = sorted(marks.get(begin, ()))
            pieces.append(Piece(source[begin:end], ",".join(map(str, numbers))))
            begin = end
    return tuple(pieces)


def proofs_table(services: Services, connection: Connection) -> Table:
    """Return the newest texts that were read a second time, each beside its source."""
    intro, zone = services.tables.intro, services.settings.zone
    since = midnight(day_of(services.clock.now(), zone).date - timedelta(days=DAYS - 1), zone)
    recent = (intro.c.created_at >= since, intro.c.reading.is_not(None))
    rows = connection.execute(select(intro).where(*recent).order_by(intro.c.intro_id.desc()).limit(MOST_PROOFS))
    found = rows.mappings().all()
    total = connection.execute(select(func.count()).select_from(intro).where(*recent)).scalar_one()
    names = names_of(services, connection, [row["vod_id"] for row in found])
    return Table(
        "proofs",
        "逐条核对",
        (
            NAME,
            VOD_ID,
            ListColumn("outcome", "结果", LABEL),
            ListColumn("text", "简介", ColumnKind.MARKED),
            ListColumn("source", "原简介", ColumnKind.MARKED),
            ListColumn("why", "删去或未通过的原因", width="wide"),
            ListColumn("by", "出自"),
            ListColumn("at", "时间", TIME),
            ACTIONS,
        ),
        [{"video": names[row["vod_id"]], **_proof(row)} for row in found],
        f"最近 {DAYS} 天复核过的文字，新的在前。简介按陈述编号，原简介里标出同一编号的依据；"
        "红色没有依据，划去的已从简介删去。",
        total=total,
        video="vod_id",
        links=common_links(services.location),
    )


def _proof(row: RowMapping) -> Row:
    statements = list(stored_statements(row["reading"], row["intro_text"] or ""))
    source = str((row["fact_sheet"] or {}).get("synopsis", ""))
    reasons = [f"{number}：{each.problem}" for number, each in enumerate(statements, start=1) if each.problem]
    whole = row["reason"] if row["state"] == IntroState.REFUSED and not reasons else ""
    outcome = _OUTCOMES.get(row["state"], row["state"])
    cut = any(each.cut for each in statements) and row["state"] != IntroState.REFUSED
    moment: datetime = row["created_at"]
    return {
        "vod_id": row["vod_id"],
        "outcome": (outcome, "删去部分") if cut else outcome,
        "text": text_pieces(statements),
        "source": source_pieces(source, statements),
        "why": "\n".join(filter(None, (*reasons, whole))) or None,
        "by": f"{row['model']}\n{row['prompt_version']}\n{row['reader'] or _NO_READER}",
        "at": moment,
        "links": (("history", row["vod_id"]), ("redo", row["vod_id"])),
    }


def origins_table(services: Services, connection: Connection) -> Table:
    """Return how many intros that are in the CMS come from each model, version of the prompt and reader."""
    intro = services.tables.intro
    origin = (intro.c.model, intro.c.prompt_version, intro.c.reader)
    query = (
        select(*origin, func.count(), func.max(intro.c.created_at))
        .where(intro.c.state == IntroState.WRITTEN)
        .group_by(*origin)
        .order_by(func.max(intro.c.created_at).desc())
    )
    return Table(
        "origins",
        "简介出自何处",
        (
            ListColumn("model", "模型"),
            ListColumn("prompt", "提示词"),
            ListColumn("reader", "复核"),
            ListColumn("count", "在用的简介", NUMBER),
            ListColumn("latest", "最近一篇", TIME),
            ACTIONS,
        ),
        [_origin(*row) for row in connection.execute(query)],
        "某个模型、提示词或复核者不可信时，由此一次撤销它的全部简介：先预览，确认后再正式撤销。之后被人改过的、被网站锁定的会跳过。",
        links=dict(_take_back(services.location)),
    )


def _origin(model: str, prompt: str, reader: str | None, count: int, latest: datetime) -> Row:
    of_reader = (("reader", reader),) if reader else ()
    return {
        "model": model,
        "prompt": prompt,
        "reader": reader or _NO_READER,
        "count": count,
        "latest": latest,
        "links": (("model", model), ("prompt", prompt), *of_reader),
    }


def _take_back(location: str) -> Iterator[tuple[str, ListLink]]:
    for name, text in (("model", "撤销此模型的"), ("prompt", "撤销此提示词的"), ("reader", "撤销此复核者的")):
        launch = links.revert(**{f"intro_{name}": _PLACEHOLDER})
        yield name, ListLink(text, launch.path(location).replace(_PLACEHOLDER, "{0}"))
