"""The demo of comments: 5,000 of the CMS's comments are imported and ordered, a rule is tried, a comment is deleted."""

from __future__ import annotations

import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
from pydantic import SecretStr
from rich.console import Console
from sqlalchemy import create_engine, inspect

from douban_pipeline.core.language import terminal_text
from douban_pipeline.demo.comment_sample import make_comments
from douban_pipeline.demo.outcomes import DemoOutcome
from douban_pipeline.demo.sample import load_videos
from douban_pipeline.demo.talk import run_talk

COMMENTS = 5000
RULE = {
    "name": "bought_likes",
    "expression": "has_link and reports >= 3",
    "decision": "sink",
    "amount": 2.0,
    "reason": "带网址且被多次举报",
}
_TYPE = 1
_FILM = 1
"""Index among the sample's films; not the film of `demo.talk`, whose section is in the same file."""
_SERVER = "demo"
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Stage:
    """The service, its worker and Dagster's jobs, for use as visitor, operator or another server."""

    services: Any
    instance: dg.DagsterInstance
    client: httpx.Client
    admin: str
    key: str
    object_id: int

    def ask(self, path: str, token: str = "", **given: Any) -> Any:
        """Return the answer of a path."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.client.get(f"/comments/v1{path}", headers=headers, params=given)
        return answer.json() if answer.is_success else None

    def page(self, sort: str, size: int = 10, cursor: str | None = None) -> dict[str, Any]:
        """Return a page of the section."""
        found = self.ask(f"/sections/{_TYPE}/{self.object_id}/page", sort=sort, size=size, cursor=cursor)
        return dict(found)

    def decide(self, path: str, **body: Any) -> dict[str, Any]:
        """Make a decision as an operator, and have the worker apply it."""
        headers = {"Authorization": f"Bearer {self.admin}"}
        answer = self.client.post(f"/comments/v1/admin/{path}", headers=headers, json=body)
        self.work()
        return dict(answer.raise_for_status().json())

    def work(self) -> None:
        """Apply all pending events."""
        worker = self.services.worker()
        while worker.turn():
            pass
        worker.stop()

    def run(self, job: str, **config: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Run a job; return the output of its steps, and whether it and all checks passed."""
        from douban_pipeline.comments.definitions import build_defs

        settings = self.services.settings
        repository = build_defs(settings=settings, resource_overrides={"services": self.services}).get_repository_def()
        given = {"ops": {name: {"config": dict(values)} for name, values in config.items()}}
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        result = repository.get_job(job).execute_in_process(
            instance=self.instance, raise_on_error=False, run_config=given | quiet
        )
        reported: dict[str, Any] = {}
        for event in result.all_node_events:
            if event.is_successful_output:
                reported |= {name: value.value for name, value in event.step_output_data.metadata.items()}
            elif event.is_step_materialization:
                found = event.step_materialization_data.materialization.metadata
                reported |= {name: value.value for name, value in found.items()}
        failed = [each.check_name for each in result.get_asset_check_evaluations() if not each.passed]
        return reported | {"failed checks": failed}, result.success and not failed


def run_comments(home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Simulate a discussion of a film, then import 5,000 comments; return the result of both.

    Args:
        home: The demo's folder.
        instance: Dagster's instance.
        console: Where to print.
    """
    talked = run_talk(home, instance, console)
    well = run_section(home, instance, console)
    return DemoOutcome(
        talked.well and well,
        terminal_text("{talk}; {count} comments taken in, a rule tried, one deleted everywhere").format(
            talk=talked.done, count=COMMENTS
        ),
    )


def prepare_section(settings: Any) -> None:
    """Add 5,000 of the CMS's own comments on one film to the library, imported for a worker to process.

    Args:
        settings: Settings of the comments; if the library already has comments, nothing is done.
    """
    from douban_pipeline.comments.cms_import import take_in
    from douban_pipeline.comments.services import open_services
    from douban_pipeline.comments.store.sections import ensure_section

    services, video = open_services(settings, "demo").ready(), load_videos()[_FILM]
    library = create_engine(settings.library_url.get_secret_value())
    try:
        if not inspect(library).has_table("mac_comment"):
            now = services.clock.now()
            with library.begin() as connection:
                make_comments(connection, COMMENTS, film(), now)
            with services.engine.begin() as connection:
                ensure_section(connection, _TYPE, film(), now, owner_id=1, title=str(video["vod_name"]))
        take_in(services, 2 * COMMENTS)
    finally:
        library.dispose()
        services.close()


def film() -> int:
    """Return the CMS's id of the film with the 5,000 comments."""
    return int(load_videos()[_FILM]["vod_id"])


def run_section(home: Path, instance: dg.DagsterInstance, console: Console, comments: int = COMMENTS) -> bool:
    """Import comments, order them, try a rule, delete a comment and restore it; return whether all succeeded.

    Args:
        home: The demo's folder; the database is recreated in it.
        instance: Dagster's instance.
        console: Where to print.
        comments: Number of comments.
    """
    with _stage(home / "comments-demo", instance, console) as stage:
        return _take_in(stage, console, comments) and _try_rule(stage, console) and _delete(stage, console)


@contextmanager
def _stage(folder: Path, instance: dg.DagsterInstance, console: Console) -> Iterator[_Stage]:
    from douban_pipeline.comments.api.routes import PUBLIC, comments_router
    from douban_pipeline.comments.services import open_services
    from douban_pipeline.comments.settings import CommentsSettings
    from douban_pipeline.core.mounts import Mount
    from douban_pipeline.demo.embedded_redis import embedded_redis
    from douban_pipeline.serve.app import create_app
    from douban_pipeline.serve.settings import ServeSettings

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    url, admin, key = f"sqlite:///{folder / 'comments.sqlite'}", secrets.token_hex(16), secrets.token_hex(16)
    with ExitStack() as stack:
        redis = stack.enter_context(embedded_redis())
        if redis is None:
            console.print(terminal_text("comments   no redis-server is found: everything is read from the database"))
        settings = CommentsSettings.load(
            home=folder,
            library_url=SecretStr(url),
            database_url=SecretStr(url),
            table_prefix="mac_",
            redis_url=SecretStr(redis or ""),
            admin_token=SecretStr(admin),
            api_keys=SecretStr(f"{_SERVER}={key}:1000"),
            read_sites=SecretStr(""),
        )
        services = open_services(settings, "demo")
        stack.callback(services.close)
        services.ready()
        router, context = comments_router(services)
        context.local_ms = 0
        stack.callback(context.close)
        app = create_app(ServeSettings(token=SecretStr("")), [Mount("comments", router, public=PUBLIC)])
        base = stack.enter_context(_served(app))
        client = stack.enter_context(httpx.Client(base_url=base, timeout=30, trust_env=False))
        yield _Stage(services, instance, client, admin, key, film())


@contextmanager
def _served(app: Any) -> Iterator[str]:
    """Serve an application on loopback; yield its address."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    # Connections are kept alive during the demo: one that is closed while it is reused causes an error.
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_keep_alive=600)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True, name="comments")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        listener.close()


def _take_in(stage: _Stage, console: Console, comments: int) -> bool:
    """Create the CMS's table, import it, order the comments, and open the page."""
    services, video = stage.services, load_videos()[_FILM]
    library = create_engine(services.settings.library_url.get_secret_value())
    with library.begin() as connection:
        make_comments(connection, comments, stage.object_id, services.clock.now())
    library.dispose()
    title = str(video["vod_name"])
    stage.client.put(
        f"/comments/v1/server/sections/{_TYPE}/{stage.object_id}",
        headers={"Authorization": f"Bearer {stage.key}"},
        json={"owner_id": 1, "title": title},
    ).raise_for_status()
    begun = time.perf_counter()
    taken, reported = stage.run("report_comments")
    stage.work()
    seconds = time.perf_counter() - begun
    scored, passed = stage.run("score_comments")
    checks = (
        terminal_text("passed")
        if passed
        else terminal_text("failed: {names}").format(names=", ".join(scored["failed checks"]))
    )
    counts = {"count": taken.get("taken", 0), "sections": scored.get("sections", 0)}
    text = terminal_text(
        "comments   {count} of the CMS's own on 《{title}》 taken in and applied in {seconds} s, "
        "sections ordered by heat: {sections}; checks {checks}"
    ).format(title=title, seconds=f"{seconds:.1f}", checks=checks, **counts)
    console.print(text, soft_wrap=True)
    begun = time.perf_counter()
    page = stage.page("heat")
    took = 1000 * (time.perf_counter() - begun)
    section = page["section"]
    console.print(
        terminal_text("page       {count} comments, {roots} of them roots, opened in {took} ms; the first:").format(
            count=section["count"], roots=section["roots"], took=f"{took:.0f}"
        )
    )
    _print_first(page["items"], console)
    found = stage.ask(f"/admin/comments/{page['items'][2]['id']}", stage.admin)
    console.print(terminal_text("why third? {why}").format(why=found["why"][0]), markup=False, soft_wrap=True)
    for sentence in found["why"][1:]:
        console.print(f"           {sentence}", markup=False, soft_wrap=True)
    return reported and passed and section["count"] == comments and len(found["why"]) > 3


def _print_first(items: list[dict[str, Any]], console: Console) -> None:
    for place, item in enumerate(items[:5], start=1):
        text = "".join(piece.get("text") or piece.get("link") or "" for piece in item["pieces"])
        text = text if len(text) <= 40 else text[:39] + "…"
        told = {"author": item["author"]["name"], "likes": item["likes"], "replies": item["replies"]}
        console.print(
            terminal_text("           {place}. {text} ({author}, {likes} likes, {replies} replies)").format(
                place=place, text=text, **told
            ),
            markup=False,
            soft_wrap=True,
        )


def _try_rule(stage: _Stage, console: Console) -> bool:
    """Show which comments a rule would move, activate it, and show the first comments again."""
    section_id = int(stage.page("heat")["section"]["id"])
    rule = {**RULE, "try_on": section_id}
    tried, first = stage.run("save_comment_rule", save_rule=rule)
    given = {name: RULE[name] for name in ("expression", "decision", "amount")}
    text = terminal_text(
        "rule       {expression} → {decision} by {amount}, tried: {changed} would get another score, {moved} would move"
    ).format(changed=tried.get("changed"), moved=tried.get("moved"), **given)
    console.print(text, markup=False, soft_wrap=True)
    before = [item["id"] for item in stage.page("heat")["items"]]
    saved, second = stage.run("save_comment_rule", save_rule={**rule, "dry_run": False, "operator": "demo"})
    _, third = stage.run("score_comments")
    page = stage.page("heat")
    gone = [place for place, number in enumerate(before, start=1) if number not in {i["id"] for i in page["items"]}]
    left = ", ".join(map(str, gone)) or terminal_text("nobody")
    console.print(
        terminal_text(
            "           in force as revision {revision}; who was number {gone} has left the first ten:"
        ).format(revision=saved.get("revision"), gone=left)
    )
    _print_first(page["items"], console)
    return first and second and third and len(gone) == 1 and tried.get("revision") == 0


def _delete(stage: _Stage, console: Console) -> bool:
    """Delete the hottest comment with replies, look for it in every list, and restore it."""
    chosen = next(item for item in stage.page("heat", 50)["items"] if item["replies"])
    number, below = chosen["id"], chosen["replies"]
    replies = [item["id"] for item in stage.ask(f"/comments/{number}/replies")["items"]]
    before, listed = stage.page("new")["section"]["count"], _places(stage, chosen, replies)
    given = {"ids": [number], "status": 2, "reason": "演示删除"}
    refused = stage.decide("moderate", **given)["refused"]
    batch = stage.decide("moderate", **given, dry_run=False)["batch"]
    after, found = stage.page("new")["section"]["count"], _places(stage, chosen, replies)
    lists = terminal_text(", ").join(_list_names().values())
    counts = {"below": below, "found": len(found), "before": before, "after": after}
    console.print(
        terminal_text(
            "deleted    comment {number} with {below} replies, which was in all of {lists}: now in "
            "{found} of them, and {before} comments became {after}"
        ).format(number=number, lists=lists, **counts),
        soft_wrap=True,
    )
    stage.decide("undo", batch=batch, reason="演示撤销")
    again, back = stage.page("new")["section"]["count"], _places(stage, chosen, replies)
    console.print(
        terminal_text("           taken back: {count} comments, in {found} of {all} again").format(
            count=again, found=len(back), all=len(_LISTS)
        )
    )
    return not refused and not found and (after, again) == (before - 1 - below, before) and listed == back == [*_LISTS]


def _list_names() -> dict[str, str]:
    return {
        "heat": terminal_text("by heat"),
        "time": terminal_text("by time"),
        "likes": terminal_text("by likes"),
        "floor": terminal_text("by floor"),
        "replies": terminal_text("its replies"),
        "dialog": terminal_text("its dialog"),
        "servers": terminal_text("the API of servers"),
    }


_LISTS = ("heat", "time", "likes", "floor", "replies", "dialog", "servers")


def _places(stage: _Stage, chosen: dict[str, Any], replies: list[str]) -> list[str]:
    """Return the lists and answers that contain a comment or a reply to it; long lists are read at its old position."""
    number, floor = chosen["id"], chosen["floor"]
    opened = {
        "heat": stage.page("heat", 50),
        "time": stage.page("new", 50, f"{floor + 1}.0"),
        "likes": stage.page("likes", 50, f"{chosen['likes']}.{int(number) + 1}"),
        "floor": stage.page("floor", 50, f"{floor - 1}.0"),
    }
    found = [name for name, page in opened.items() if {number, *replies} & _ids(page)]
    if stage.ask(f"/comments/{number}/replies") is not None:
        found.append("replies")
    if any(stage.ask(f"/comments/{each}/dialog") is not None for each in replies):
        found.append("dialog")
    if stage.ask("/server/comments", stage.key, ids=",".join([number, *replies]))["comments"]:
        found.append("servers")
    return found


def _ids(page: dict[str, Any]) -> set[str]:
    items = [*page["pinned"], *page["items"]]
    return {each["id"] for item in items for each in (item, *item["preview"])}
