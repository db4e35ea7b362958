"""The commands ``tmdb ask``, ``forget`` and ``replay-spool``: the question service in a terminal."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from uuid import UUID

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.console import console, plain
from douban_pipeline.core.database_urls import DatabaseError
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.core.ui.tmdb_attribution import ATTRIBUTION
from douban_pipeline.tmdb.enrichment.factory import open_service, open_spool, service_store
from douban_pipeline.tmdb.enrichment.metrics import Metrics
from douban_pipeline.tmdb.enrichment.results import EnrichmentResult, State
from douban_pipeline.tmdb.enrichment.spool import SpoolError, conversation_hash, user_hash
from douban_pipeline.tmdb.enrichment.transient import LABEL_WORDS
from douban_pipeline.tmdb.enrichment.writer import Writer
from douban_pipeline.tmdb.services import open_store
from douban_pipeline.tmdb.settings import load_settings

_MOST_EDGES = 15
_STATES = {
    State.ANSWERED: "已回答",
    State.NOTHING: "没有找到",
    State.LATE: "TMDB 未及时回答",
    State.FAILED: "TMDB 没有给出可用的答案",
    State.REFUSED: "未能及时去问 TMDB",
    State.SKIPPED: "与影视无关",
}
_PERSISTENCE = {
    "queued": "已排队写入",
    "written": "已写入",
    "spooled": "PostgreSQL 不可用，已存入本机暂存区",
    "lost": "未能保存",
    "rejected": "被 PostgreSQL 拒绝，已搁置",
    "forgotten": "用户已要求删除，未保存",
    "skipped": "不保存",
}


def ask(question: str, *, kb: str, user: str, session: str, incognito: bool, as_json: bool) -> bool:
    """Answer a question and print its evidence; return whether TMDB gave an answer."""
    settings = load_settings()
    with ExitStack() as stack:
        # A server is not waited for: a question that it cannot take now goes to the spool.
        store = service_store(settings)
        if store is None and (not settings.has_key or (user and session and not incognito)):
            try:
                store = stack.enter_context(open_store(settings)).ready()
            except DatabaseError as error:
                if not settings.has_key:
                    raise  # nothing else could answer
                store = None
                plain(terminal_text("the question is not kept: {error}").format(error=error))
        service = stack.enter_context(open_service(settings, store))
        result = asyncio.run(
            service.enrich_query(
                question, kb_prefix=kb, user_id=user or None, session_id=session or None, incognito=incognito
            )
        )
    if as_json:
        plain(json.dumps(result.to_json(), ensure_ascii=False, indent=1))
    else:
        _print(result)
    return result.state not in (State.FAILED, State.LATE, State.REFUSED)


def _print(result: EnrichmentResult) -> None:
    plain(result.answer)
    plain("")
    entities = "、".join(result.route.extracted_entities) or "无"
    state = "没有密钥，没有去问 TMDB" if result.retry_after == 0 else _STATES[result.state]
    plain(f"状态：{state}；意图：{result.route.query_intent.value}；识别的名称：{entities}")
    if result.problem:
        plain(f"原因：{result.problem}")
    if result.candidates_top3:
        table = Table("候选", "类型", "年份", "分数", "标题", "年", "角色", "热度", "选中")
        chosen = {(each.key.type.value, each.key.tmdb_id) for each in result.selected}
        for each in result.candidates_top3:
            parts = each["parts"]
            table.add_row(
                f"{each['name']} ({each['media_type']}/{each['tmdb_id']})",
                each["media_type"],
                str(each["year"] or ""),
                f"{each['score']:g}",
                *(f"{parts[name]:g}" for name in ("title", "year", "role", "popularity")),
                "✓" if (each["media_type"], each["tmdb_id"]) in chosen else "",
            )
        console.print(table)
    if result.uncertain:
        plain("有分数相近的候选，请核对是否是想问的那一个。")
    graph = result.graph
    if graph.nodes:
        kinds: dict[str, int] = {}
        for key in graph.nodes:
            kinds[LABEL_WORDS[key.label]] = kinds.get(LABEL_WORDS[key.label], 0) + 1
        nodes = "、".join(f"{word} {count}" for word, count in kinds.items())
        plain(f"临时图：{nodes}；边 {len(graph.edges)} 条" + ("，例如" if graph.edges else ""))
        for edge in list(graph.edges)[:_MOST_EDGES]:
            plain(f"  {graph.name(edge.start)} -[{edge.relation.value}]-> {graph.name(edge.end)}")
    if result.as_of is not None:
        where = "已存的资料" if result.source == "store" else "TMDB"
        plain(f"来源：{where}，{result.as_of[:10]} 取得")
    plain(f"耗时 {result.duration_ms:.0f} 毫秒，其中 TMDB {result.tmdb_ms:.0f} 毫秒")
    plain(f"提问：{_PERSISTENCE[result.persistence]}")
    plain(ATTRIBUTION)


def replay_spool(*, dry_run: bool) -> bool:
    """Write the spooled records to PostgreSQL; return whether none remain."""
    settings = load_settings()
    spool = open_spool(settings)
    try:
        if not dry_run and spool.counts()[0]:
            with open_store(settings) as store:
                metrics = Metrics()
                writer = Writer(store.ready(), spool, metrics)
                done = writer.replay()
                written = metrics.total("persisted_total")
                console.print(
                    terminal_text("{done} taken from the spool, {written} of them written").format(
                        done=done, written=written
                    )
                )
        waiting, rejected = spool.counts()
    except SpoolError as error:
        raise ProblemsError([str(error)]) from error
    finally:
        spool.close()
    console.print(terminal_text("{waiting} waiting, {rejected} put aside").format(waiting=waiting, rejected=rejected))
    return waiting == 0


def forget(*, user: str, conversation: UUID | None) -> None:
    """Delete the questions of a user or a conversation."""
    if bool(user) == (conversation is not None):
        raise ProblemsError([terminal_text("give either --user or --conversation")])
    settings = load_settings()
    spool = open_spool(settings, SystemClock())
    try:
        # The spool first, so that none of its questions is written after the deletion.
        spooled = spool.forget(user_hash(user) if user else conversation_hash(conversation or UUID(int=0)))
    except SpoolError as error:
        raise ProblemsError([str(error)]) from error
    finally:
        spool.close()
    with open_store(settings) as store:
        store.ready()
        done = store.delete_user(user) if user else store.delete_conversation(conversation or UUID(int=0))
    more = terminal_text(", {spooled} more that waited in the spool").format(spooled=spooled) if spooled else ""
    console.print(terminal_text("{done} questions deleted").format(done=done) + more)
