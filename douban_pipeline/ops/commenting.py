"""The command ``comment-worker``: processes the events of comment sections."""

from __future__ import annotations

import signal
import threading

from douban_pipeline.comments.settings import load_settings
from douban_pipeline.core.console import console
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.ui.language import said

POLL_SECONDS = 0.05
"""Minimum seconds between two polls of a worker for events: what is written shows at once to a person."""


def work(*, once: bool) -> None:
    """Process events until a signal arrives, or only the events that are waiting now.

    Raises:
        ProblemsError: The libraries of the extra are not installed, or a word list cannot be read.
        DatabaseError: The tables are missing or of another version.
    """
    settings = load_settings()
    try:
        from douban_pipeline.comments.cms_moderation import CmsModeration
        from douban_pipeline.comments.services import open_services
    except ImportError as error:
        missing = said(f"没有安装 {error.name}", f"{error.name} is not installed")
        raise ProblemsError([f"{missing}: pip install 'douban_pipeline[comments]'"]) from error
    services = open_services(settings, "worker").ready()
    try:
        worker = services.worker()
    except OSError as error:
        raise ProblemsError([said(f"词表无法读取：{error}", f"a word list cannot be read: {error}")]) from error
    try:
        if once:
            done = 0
            while turn := worker.turn():
                done += turn
            worker.stop()
            console.print(said(f"已处理 {done} 个事件", f"{done} events applied"), highlight=False)
            return
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        without = said("没有 Redis：全部由数据库应答", "no Redis: the database answers everything")
        lists = said("列表在 Redis 中", "lists in Redis") if services.lists is not None else without
        line = said(f"评论工作进程，{lists}；Ctrl-C 停止", f"comment worker, {lists}; Ctrl-C stops")
        console.print(line, highlight=False, soft_wrap=True)
        try:
            binlog = services.binlog_reader()
        except ModuleNotFoundError as error:
            missing = said(f"缺少 {error.name}", f"{error.name} missing")
            raise ProblemsError([f"{missing}: pip install 'douban_pipeline[comments-binlog]'"]) from error
        if binlog is not None:
            console.print(said("列表跟随二进制日志", "lists follow the binary log"), highlight=False)
            threading.Thread(target=binlog.run, args=(stopped, 0.2), daemon=True, name="comments-binlog").start()
        reviewer = services.model_reviewer()
        if reviewer is not None:
            # A daemon thread; comments it has not reviewed when the process ends are reviewed later.
            console.print(said("由模型审读发布的内容", "a model reads what is published"), highlight=False)
            threading.Thread(target=reviewer.run, args=(stopped, 1.0), daemon=True, name="comments-model").start()
        cms = CmsModeration(services)
        if cms.is_on:
            console.print(said("跟随 CMS 对评论的处理", "follows the CMS's moderation of comments"), highlight=False)
            threading.Thread(target=cms.run, args=(stopped,), daemon=True, name="comments-cms").start()
        wait = threading.Event.wait if services.lists is None else services.lists.wake_ups().wait
        worker.run(stopped, POLL_SECONDS, wait)
    finally:
        services.close()
