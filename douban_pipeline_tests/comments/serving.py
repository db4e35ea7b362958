"""The comment service on loopback, with a worker that works when a test says so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from douban_pipeline.comments.api.context import Context
from douban_pipeline.comments.api.routes import PUBLIC, comments_router
from douban_pipeline.comments.dependencies import DEPENDENCIES, Dependencies
from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.services import CommentsServices, open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.counter_check import count_differences
from douban_pipeline.comments.store.sections import ensure_section
from douban_pipeline.comments.worker import Worker
from douban_pipeline.core.database import reading
from douban_pipeline.core.guesses import GuessGuard
from douban_pipeline.core.mounts import Mount
from douban_pipeline.serve.app import create_app
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.harness.fixtures.clocks import FakeClock

SECRET = "a-secret-of-the-site-0123456789-01"
ADMIN = "an-operator-0123456789"
AUDIT = "an-auditor-0123456789"
KEY = "a-server-key-0123456789"


@dataclass
class Served:
    """The service, as visitors and operators meet it."""

    base: str
    services: CommentsServices
    context: Context
    worker: Worker
    clock: FakeClock
    client: httpx.Client
    objects: Iterator[int] = field(default_factory=lambda: count(100))

    def section(self, owner_id: int = 1, title: str = "片名") -> int:
        """Make a section of its own for a test; return its object's id."""
        object_id = next(self.objects)
        with self.services.engine.begin() as connection:
            ensure_section(connection, 1, object_id, self.clock.now(), owner_id=owner_id, title=title)
        return object_id

    def token(self, user: int, **claims: Any) -> str:
        expires = self.clock.now() + timedelta(hours=1)
        return make_token(user, SECRET, expires, name=f"用户{user}", **claims)

    def call(self, method: str, path: str, user: int | str | None = None, **given: Any) -> httpx.Response:
        """Send a request as a user (a number), with a bearer (a text), or as nobody."""
        headers = dict(given.pop("headers", {}))
        if user is not None:
            headers["Authorization"] = f"Bearer {self.token(user) if isinstance(user, int) else user}"
        return self.client.request(method, f"/comments/v1{path}", headers=headers, **given)

    def publish(self, user: int, object_id: int, content: str, parent: str | None = None) -> str:
        body = {"content": content, **({"parent": parent} if parent else {})}
        answer = self.call("POST", f"/sections/1/{object_id}/comments", user, json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def page(self, object_id: int, user: int | str | None = None, **given: Any) -> dict[str, Any]:
        answer = self.call("GET", f"/sections/1/{object_id}/page", user, params=given)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def listed(self, object_id: int, **given: Any) -> list[str]:
        return [item["id"] for item in self.page(object_id, **given)["items"]]

    def work(self) -> None:
        while self.worker.turn():
            pass

    def differences(self) -> list[str]:
        with reading(self.services.engine) as connection:
            sections = connection.exec_driver_sql("SELECT section_id FROM cmt_section").scalars().all()
            return [found for number in sections for found in count_differences(connection, number)]


@contextmanager
def served(home: Path, guard: GuessGuard | None = None, **values: Any) -> Iterator[Served]:
    """Yield the service with settings, and counts shared by processes, of a test's own."""
    given = {
        "home": home,
        "token_secret": SECRET,
        "admin_token": ADMIN,
        "audit_token": AUDIT,
        "api_keys": f"site={KEY}:1000",
        "publish_per_minute": 0,
        "cms_login": False,
        **values,
    }
    clock = FakeClock()
    services = open_services(CommentsSettings(_env_file=None, **given), "service", clock).ready()
    router, context = comments_router(services, guard)
    # A crowded machine takes its time; what limits are for is tested where they are the subject.
    patient = {name: replace(each, seconds=100.0) for name, each in DEPENDENCIES.items()}
    context.dependencies, context.local_ms = Dependencies(patient), 0
    app = create_app(
        ServeSettings(_env_file=None, token="a-token-of-the-service-0123"),
        [Mount("comments", router, public=PUBLIC, origins=context.settings.allowed_origins, problem=context.problem)],
        clock,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="error",
            lifespan="off",
            access_log=False,
            timeout_keep_alive=600,
            timeout_graceful_shutdown=1,
        )
    )
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=base, timeout=100, trust_env=False) as client:
            yield Served(base, services, context, services.worker(), clock, client)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
        context.close()
        services.close()
