"""The command ``comment-worker``: processes the events of comment sections."""

from __future__ import annotations

import signal
import threading

from douban_pipeline.comments.cms_moderation import CmsModeration
from douban_pipeline.comments.services import open_services
from douban_pipeline.comments.settings import load_settings
from douban_pipeline.core.console import console
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text

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
        without = terminal_text("no Redis: the database answers everything")
        lists = terminal_text("lists in Redis") if services.lists is not None else without
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
