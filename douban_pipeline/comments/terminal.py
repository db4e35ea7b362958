"""The command ``comment-worker``: processes the events of comment sections."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path

from douban_pipeline.comments.cms_moderation import CmsModeration
from douban_pipeline.comments.person import count_data, erase_data, export_data
from douban_pipeline.comments.services import open_services
from douban_pipeline.comments.settings import load_settings
from douban_pipeline.core.console import console
from douban_pipeline.core.database import reading
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.terminal_table import Table

POLL_SECONDS = 0.05
"""Minimum seconds between two polls of a worker for events: what is written shows at once to a person."""


def work(*, once: bool) -> None:
    """Process events until a signal arrives, or only the events that are waiting now.

    Raises:
        ProblemsError: A word list, or the library that follows the binary log, is missing.
        DatabaseError: The tables are missing or of another version.
    """
    services = open_services(load_settings(), "worker").ready()
    try:
        worker = services.worker()
    except OSError as error:
        raise ProblemsError([terminal_text("a word list cannot be read: {error}").format(error=error)]) from error
    try:
        if once:
            done = 0
            while turn := worker.turn():
                done += turn
            worker.stop()
            console.print(terminal_text("{done} events applied").format(done=done), highlight=False)
            return
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        lists = terminal_text("lists in Redis") if services.lists is not None else services.settings.without_redis
        line = terminal_text("comment worker, {lists}; Ctrl-C stops").format(lists=lists)
        console.print(line, highlight=False, soft_wrap=True)
        try:
            binlog = services.binlog_reader()
        except ModuleNotFoundError as error:
            raise ProblemsError([missing_library(error.name, "comments-binlog")]) from error
        if binlog is not None:
            console.print(terminal_text("lists follow the binary log"), highlight=False)
            threading.Thread(target=binlog.run, args=(stopped, 0.2), daemon=True, name="comments-binlog").start()
        reviewer = services.model_reviewer()
        if reviewer is not None:
            # A daemon thread; comments it has not reviewed when the process ends are reviewed later.
            console.print(terminal_text("a model reads what is published"), highlight=False)
            threading.Thread(target=reviewer.run, args=(stopped, 1.0), daemon=True, name="comments-model").start()
        cms = CmsModeration(services)
        if cms.is_on:
            console.print(terminal_text("follows the CMS's moderation of comments"), highlight=False)
            threading.Thread(target=cms.run, args=(stopped,), daemon=True, name="comments-cms").start()
        wait = threading.Event.wait if services.lists is None else services.lists.wake_ups().wait
        worker.run(stopped, POLL_SECONDS, wait)
    finally:
        services.close()


def person(user_id: int, export: Path | None, *, erase: bool, operator: str) -> None:
    """Print what is stored of a user, write it to a file, or erase it.

    Raises:
        ProblemsError: The file exists, or nobody is named who erases.
        DatabaseError: The tables are missing or of another version.
    """
    if export is not None and export.exists():
        raise ProblemsError([terminal_text("{file} exists already").format(file=export)])
    if erase and not operator.strip():
        raise ProblemsError([terminal_text("say who erases with --operator")])
    services = open_services(load_settings(), "terminal").ready()
    try:
        with reading(services.engine) as connection:
            counts = count_data(connection, user_id)
            found = export_data(connection, user_id) if export is not None else {}
        if export is not None:
            export.touch(mode=0o600)
            export.write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")
            console.print(terminal_text("written to {file}").format(file=export), highlight=False, soft_wrap=True)
        if erase:
            counts = erase_data(services, user_id, f"terminal:{operator.strip()}"[:40])
        title = terminal_text("erased, of user {user}") if erase else terminal_text("stored of user {user}")
        table = Table(title=title.format(user=user_id), title_justify="left", show_header=False)
        names = person_names()
        for name, count in counts.items():
            table.add_row(names[name], str(count))
        console.print(table)
        if erase:
            text = terminal_text("Comment workers erase the texts now; call this again to see what is left.")
        elif sum(counts.values()):
            text = terminal_text("Nothing was changed: --erase erases it, --export FILE writes it to a file.")
        else:
            text = terminal_text("Nothing is stored.")
        console.print(text, highlight=False, soft_wrap=True)
    finally:
        services.close()


def person_names() -> dict[str, str]:
    """Return the names of the kinds of rows that a person has."""
    return {
        "comments": terminal_text("comments"),
        "earlier_texts": terminal_text("texts before edits"),
        "addresses": terminal_text("addresses"),
        "votes": terminal_text("likes and dislikes"),
        "reports": terminal_text("reports of comments"),
        "views": terminal_text("comments seen"),
        "notices": terminal_text("notices"),
        "events": terminal_text("requests (events)"),
        "decisions": terminal_text("decisions about comments"),
        "levels": terminal_text("bans and other levels; those in force are kept"),
    }
