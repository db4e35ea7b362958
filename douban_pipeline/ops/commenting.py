"""The command ``comment-worker``: applies what happens in comment sections."""

from __future__ import annotations

import signal
import threading

from douban_pipeline.comments.settings import load_settings
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.ops.console import console


def work(*, once: bool) -> None:
    """Apply events until a signal comes, or those that wait now.

    Raises:
        ProblemsError: The libraries of the extra are not installed, or a list of words cannot be read.
        DatabaseError: The tables are missing or of another version.
    """
    settings = load_settings()
    try:
        from douban_pipeline.comments.services import open_services
    except ImportError as error:
        raise ProblemsError([f"{error.name} is not installed: pip install 'douban_pipeline[comments]'"]) from error
    services = open_services(settings, "worker").ready()
    try:
        worker = services.worker()
    except OSError as error:
        raise ProblemsError([f"a list of words cannot be read: {error}"]) from error
    try:
        if once:
            done = 0
            while turn := worker.turn():
                done += turn
            worker.stop()
            console.print(f"{done} events applied", highlight=False)
            return
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        lists = "lists in Redis" if services.lists is not None else "no Redis: the database answers everything"
        console.print(f"worker of comments, {lists}; Ctrl-C stops", highlight=False, soft_wrap=True)
        try:
            binlog = services.binlog_reader()
        except ModuleNotFoundError as error:
            raise ProblemsError([f"{error.name} missing: pip install 'douban_pipeline[comments-binlog]'"]) from error
        if binlog is not None:
            console.print("lists follow the binary log", highlight=False)
            threading.Thread(target=binlog.run, args=(stopped, 0.2), daemon=True, name="comments-binlog").start()
        reviewer = services.model_reviewer()
        if reviewer is not None:
            # A thread of its own, which ends with the process: what it has not judged is judged later.
            console.print("a model reads what is published", highlight=False)
            threading.Thread(target=reviewer.run, args=(stopped, 1.0), daemon=True, name="comments-model").start()
        wait = threading.Event.wait if services.lists is None else services.lists.wake_ups().wait
        worker.run(stopped, settings.worker_poll_ms / 1000, wait)
    finally:
        services.close()
