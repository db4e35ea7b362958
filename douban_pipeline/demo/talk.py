"""The demo of comments: users comment on a film over HTTP, a worker applies it, Dagster orders it by heat."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import uvicorn
from pydantic import SecretStr
from rich.console import Console

from douban_pipeline.comments.api.routes import PUBLIC, comments_router
from douban_pipeline.comments.definitions import build_defs
from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.sections import find_section
from douban_pipeline.comments.types import SectionType
from douban_pipeline.core.database import reading
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.dagster_kit.in_process import run_job
from douban_pipeline.demo.outcomes import DemoOutcome
from douban_pipeline.demo.sample import read_data
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings

OBJECT_ID, TITLE = 14, "银翼杀手2049"
"""The film of the library that users comment on."""
_PATH = f"/comments/v1/sections/{SectionType.VIDEO.value}/{OBJECT_ID}"
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Said:
    """One comment of the demo.

    Attributes:
        user: Its author.
        text: Its text.
        parent: Index in `TALK` of the comment it answers; None for none.
        likes: Number of likes.
        dislikes: Number of dislikes.
    """

    user: int
    text: str
    parent: int | None = None
    likes: int = 0
    dislikes: int = 0


TALK: Sequence[Said] = tuple(Said(**each) for each in read_data("talk.json"))
"""The comments; the third to last has enough links to be held for review by a person."""
_DELETED = 5
"""Index of the comment that its author deletes."""
_VOTERS = range(21, 27)


def run_talk(home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Publish, like and delete over HTTP, apply it, and have Dagster score it; return the result.

    A repeated run sends the same requests, which change nothing: each has an idempotency key.

    Args:
        home: The demo's folder; the tables are in a file in it.
        instance: Dagster's instance.
        console: Where to print.
    """
    settings = CommentsSettings.load(
        home=home,
        database_url=SecretStr(f"sqlite:///{home / 'comments.sqlite'}"),
        token_secret=SecretStr(secrets.token_urlsafe(24)),
        cms_login=False,
        publish_per_minute=0,
    )
    services = open_services(settings, "demo").ready()
    try:
        with _served(services) as client:
            console.print(terminal_text("service    {url} (this machine only)").format(url=client.base_url))
            console.print(
                terminal_text("lists      lists in Redis")
                if services.lists is not None
                else terminal_text("lists      no Redis is named: the database answers")
            )
            sent = _talk(client, services)
            applied = _apply(services)
            scored = _through_dagster(services, instance)
            hot = _page(client, "heat")
            new = _page(client, "new")
        with reading(services.engine) as connection:
            section = find_section(connection, SectionType.VIDEO, OBJECT_ID)
            assert section is not None
            differences = list(count_differences(connection, section["section_id"]))
    finally:
        services.close()
    _print(hot, console)
    console.print(
        terminal_text("{sent} requests, {applied} events applied; {wrong} counters differ from the rows").format(
            sent=sent, applied=applied, wrong=len(differences)
        )
    )
    well = scored and not differences and len(hot) == len(new) == sum(said.parent is None for said in TALK) - 2
    return DemoOutcome(
        well,
        terminal_text("{applied} events of a section applied, {threads} threads by heat").format(
            applied=applied, threads=len(hot)
        )
        if applied
        else terminal_text("nothing was due"),
    )


@contextmanager
def _served(services: CommentsServices) -> Iterator[httpx.Client]:
    """Yield a client of the service, which runs on a free port during the block."""
    router, context = comments_router(services)
    context.local_ms = 0
    app = create_app(ServeSettings(), [Mount("comments", router, public=PUBLIC, problem=context.problem)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True, name="comments")
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=_START_SECONDS, trust_env=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(_START_SECONDS)
            context.close()


def _talk(client: httpx.Client, services: CommentsServices) -> int:
    """Send all users' requests; return their number."""
    expires = services.clock.now() + timedelta(hours=1)
    secret = services.settings.token_secret.get_secret_value()
    sent = 0

    def send(user: int, method: str, path: str, key: str, body: Any = None) -> dict[str, Any]:
        nonlocal sent
        token = make_token(user, secret, expires, name=f"用户{user}")
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
        answer = client.request(method, path, headers=headers, json=body)
        answer.raise_for_status()
        sent += 1
        return dict(answer.json())

    ids: list[str] = []
    for place, said in enumerate(TALK):
        body = {"content": said.text} | ({"parent": ids[said.parent]} if said.parent is not None else {})
        ids.append(str(send(said.user, "POST", f"{_PATH}/comments", f"demo-{place}", body)["id"]))
    for place, said in enumerate(TALK):
        for number, voter in enumerate(_VOTERS):
            value = 1 if number < said.likes else -1 if number < said.likes + said.dislikes else 0
            if value:
                send(voter, "PUT", f"/comments/v1/comments/{ids[place]}/vote", f"demo-{place}", {"value": value})
    send(TALK[_DELETED].user, "DELETE", f"/comments/v1/comments/{ids[_DELETED]}", "demo-delete")
    return sent


def _apply(services: CommentsServices) -> int:
    worker, applied = services.worker(), 0
    while turn := worker.turn():
        applied += turn
    worker.stop()
    return applied


def _through_dagster(services: CommentsServices, instance: dg.DagsterInstance) -> bool:
    repository = build_defs(settings=services.settings, resource_overrides={"services": services}).get_repository_def()
    results = [run_job(repository, instance, job) for job in ("score_comments", "report_comments")]
    return all(result.success for result in results)


def _page(client: httpx.Client, sort: str) -> list[dict[str, Any]]:
    answer = client.get(f"{_PATH}/page", params={"sort": sort})
    answer.raise_for_status()
    return [*answer.json()["items"]]


def _text(item: dict[str, Any]) -> str:
    return "".join(str(piece.get("text", "")) for piece in item["pieces"])


def _rows(items: Sequence[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    rows = []
    for item in items:
        rows.append((item["author"]["name"], _text(item), str(item["likes"]), str(item["replies"])))
        rows += [(f"↳ {reply['author']['name']}", _text(reply), str(reply["likes"]), "") for reply in item["preview"]]
    return rows


def _print(items: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table(
        terminal_text("author"),
        terminal_text("comment"),
        terminal_text("likes"),
        terminal_text("replies"),
        title=terminal_text("{title}, by heat").format(title=TITLE),
        title_justify="left",
    )
    for row in _rows(items):
        table.add_row(*row)
    console.print(table)
