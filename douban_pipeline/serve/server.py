"""Runs the service until it is stopped."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from douban_pipeline.core.clock import Clock, SystemClock
from douban_pipeline.core.counters import Counters
from douban_pipeline.core.database import open_engine
from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.garbage_collection import collect_from_now_on
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.core.system import every_system, installed_names
from douban_pipeline.douban.settings import load_settings as load_library_settings
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import PREFIX, ServeSettings, load_settings

_BACKLOG = 128
_HEALTH_SECONDS = 30
"""A worker process that does not answer its parent for this many seconds is restarted; a start takes up to ten."""


def listen(settings: ServeSettings) -> socket.socket:
    """Return a socket at the address of the settings.

    Raises:
        ProblemsError: The address cannot be used; the message names the settings.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"{PREFIX}HOST = {settings.host!r}, {PREFIX}PORT = {settings.port}"
        remedy = "choose another port, or stop what is on it"
        raise ProblemsError([f"cannot listen ({error.strerror}): {where}; {remedy}"]) from None


def application() -> FastAPI:
    """Return the service configured by the environment."""
    guard = open_guard()
    return create_app(load_settings(), _mounts(guard), guard=guard)


def worker_application() -> FastAPI:
    """Return the service for a process that does nothing else; called in each worker process."""
    app = application()
    collect_from_now_on()
    return app


def _mounts(guard: GuessGuard) -> list[Mount]:
    """Return what the systems have to serve; those that take any name come last."""
    names = installed_names()
    found = [
        replace(mount, installed=system.name in names)
        for system in every_system()
        if system.mounts is not None
        for mount in system.mounts()(guard)
    ]
    return sorted(found, key=lambda mount: mount.last)


def configure(app: FastAPI | str, **options: Any) -> uvicorn.Config:
    """Return the configuration of a server of the application, or of the one that a function of this name returns.

    Args:
        app: The application, or the name of the function.
        options: Further options, of `uvicorn.Config`.
    """
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        access_log=False,
        server_header=False,
        proxy_headers=False,  # they are read by `serve.forwarding`
        **options,
    )


def serve(settings: ServeSettings, listener: socket.socket) -> None:
    """Serve all systems on ``listener`` until a signal stops it; requests in progress are completed.

    Several processes accept requests from the same listener; one that dies is restarted.
    """
    several, guard = settings.processes > 1, open_guard()
    mounts = _mounts(guard)
    config = configure(
        f"{__name__}:{worker_application.__name__}" if several else create_app(settings, mounts, guard=guard),
        workers=settings.processes,
        log_level="warning",
        timeout_graceful_shutdown=10,
        timeout_worker_healthcheck=_HEALTH_SECONDS,
        lifespan="on",
    )
    with listener:
        if not several:
            collect_from_now_on()
            uvicorn.Server(config).run(sockets=[listener])
            return
        for mount in mounts:  # problems are reported here once, not by every process
            if mount.close is not None:
                mount.close()
        guard.counters.close()
        Multiprocess(config, [listener]).run()


_SECONDS = 2.0
"""How long a count may wait for the database; after that the process counts alone."""


def open_guard(clock: Clock | None = None) -> GuessGuard:
    """Return the guard against guessing, over the table in the library's database.

    Without ``DOUBAN_PIPELINE_DATABASE_URL`` it is in a file in ``HOME``, which the processes of this machine share.
    """
    settings = load_library_settings()
    clock = clock or SystemClock()
    table = own_tables(settings.table_prefix).counter
    url = settings.database_url.get_secret_value()
    engine = open_engine(url or f"sqlite:///{settings.home.absolute() / 'serve.sqlite'}", seconds=_SECONDS)
    if not url:
        table.metadata.create_all(engine, tables=[table])
    return GuessGuard(Counters(clock, engine, table))
