"""The life of comments: visitors at two services, two workers behind them, and a Redis that comes and goes.

Every request is made again with the same key until it is answered: what is never answered is noted as doubtful.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from pydantic import SecretStr
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Engine, func, select

from douban_pipeline.comments.identity import make_token
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.migrations import TREE
from douban_pipeline.comments.store.tables import comment, event
from douban_pipeline.comments.types import CommentStatus, EventState
from douban_pipeline.core.database import open_engine, reading
from douban_pipeline.core.settings_base import BASE_PREFIX
from douban_pipeline_tests.harness.rig.dagster_stack import HOST, free_port
from douban_pipeline_tests.harness.rig.own_servers import redis_program
from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.harness.soak.comments_audit import CommentsNotes, audit_comments
from douban_pipeline_tests.harness.soak.evidence import Finding
from douban_pipeline_tests.harness.soak.ground import variables
from douban_pipeline_tests.harness.soak.harms import Harm
from douban_pipeline_tests.harness.soak.life import DOWN, SystemLife

SECRET, ADMIN = "a-secret-of-the-soak-0123456789-0", "an-operator-of-the-soak-0123456"
_OBJECTS, _USERS = 4, 30
_ID = re.compile(r'"id":"(\d{15,19})"')
_TRIES, _PAUSE_SECONDS = 12, 0.5
_START_SECONDS = 300.0
_LOCAL_SECONDS = 0.3
"""How old a hot section's page may be, as the setting LOCAL_MS has it, and a little."""
_REDIS_DOWN = (2.0, 6.0)
_ACTS = {"publish": 40, "vote": 30, "report": 5, "hide": 5, "delete": 3, "read": 30, "score": 1}


class CommentsLife(SystemLife):
    """Visitors publish, reply, like, report and delete; operators hide; everybody reads."""

    name = "comments"
    rhythm = (0.05, 0.4)

    def prepare(self) -> Mapping[str, str]:
        """Start a Redis and make the tables.

        Raises:
            RigError: No ``redis-server`` is installed.
        """
        port = free_port()
        command = [redis_program(), "--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no"]
        self._redis = self.ground.program("redis", *command)
        self.ground.keep(self._redis)
        self.settings = CommentsSettings.load(
            home=self.ground.home,
            database_url=self.ground.database("comments"),
            redis_url=SecretStr(f"redis://{HOST}:{port}/0"),
            token_secret=SecretStr(SECRET),
            admin_token=SecretStr(ADMIN),
            cms_login=False,
            publish_per_minute=10_000,
        )
        self._client = Redis.from_url(self.settings.redis_url.get_secret_value())
        self.engine: Engine = open_engine(self.settings.tables_url, setting=self.settings.database_setting)
        TREE.upgrade(self.engine)
        self.notes = CommentsNotes()
        self._killing = threading.Lock()
        self._authors: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._decided: set[int] = set()
        self._count = 0
        expires = datetime.now(UTC) + timedelta(days=1)
        self._tokens = [make_token(user, SECRET, expires, name=f"用户{user}") for user in range(1, _USERS + 1)]
        self._http = httpx.Client(timeout=10, trust_env=False)
        given = variables(self.settings, "database_url", "redis_url", "token_secret", "admin_token", "cms_login")
        more = variables(self.settings, "publish_per_minute")
        return {**given, **more, f"{BASE_PREFIX}SYSTEMS": "douban,comments"}

    def begin(self) -> None:
        """Start two services and two workers, as on two hosts."""
        ports = [free_port() for _ in range(2)]
        own = [sys.executable, "-m", "douban_pipeline"]
        self._bases = [f"http://{HOST}:{port}" for port in ports]
        self._services = [
            self.ground.service(f"service-{number}", *own, "serve", "--host", HOST, "--port", str(port))
            for number, port in enumerate(ports, 1)
        ]
        self._workers = [self.ground.service(f"worker-{number}", *own, "comment-worker") for number in (1, 2)]
        for process in (*self._services, *self._workers):
            self.ground.keep(process)
        for base, process in zip(self._bases, self._services, strict=True):
            process.wait_until(lambda base=base: self._answers(base), seconds=_START_SECONDS)  # type: ignore[misc]

    def _answers(self, base: str) -> bool:
        try:
            return self._http.get(f"{base}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    # --- what people do -----------------------------------------------------------------------------------------------

    def step(self) -> str:
        """Do one thing that people do, and see what of it is committed."""
        self._look_after()
        [act] = self.rng.choices([*_ACTS], [*_ACTS.values()])
        done: str = getattr(self, f"_{act}")()
        self._see_hidden()
        return done

    def _look_after(self) -> None:
        """Start again what ended by itself; what is being killed is its killer's."""
        with self._killing:
            if ended := self.ground.watch_over((*self._services, *self._workers)):
                self.acts["processes that ended by themselves, started again"] += ended

    def _ask(self, method: str, path: str, user: int, body: Mapping[str, Any] | None = None) -> httpx.Response | None:
        """Ask one of the services, again and again with the same key; return None if none ever answered.

        An operator is user 0.
        """
        self._count += 1
        token = self._tokens[user - 1] if user else ADMIN
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"soak-{self._count}"}
        for _ in range(_TRIES):
            base = self.rng.choice(self._bases)
            try:
                answer = self._http.request(method, f"{base}/comments/v1{path}", headers=headers, json=body)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                return answer
            time.sleep(_PAUSE_SECONDS)
        return None

    def _publish(self) -> str:
        user, place = self.rng.randint(1, _USERS), self.rng.randint(1, _OBJECTS)
        text = f"第 {self._count} 条评论，写于 {place} 区"
        known = [number for number, at in [*self._places.items()][-100:] if at == place and number not in self._decided]
        parent = str(self.rng.choice(known)) if known and self.rng.random() < 0.3 else None
        body = {"content": text, **({"parent": parent} if parent else {})}
        answer = self._ask("POST", f"/sections/1/{place}/comments", user, body)
        if answer is None:
            self.notes.doubtful.add(text)
            return "a comment of unknown fate"
        if answer.status_code != 202:
            return f"a comment refused with {answer.status_code}"
        number = int(answer.json()["id"])
        self.notes.accepted[number] = text
        self._authors[number], self._places[number] = user, place
        return "a reply published" if parent else "a comment published"

    def _some(self) -> int:
        known = [number for number in [*self.notes.accepted][-300:] if number not in self._decided]
        return self.rng.choice(known) if known else 0

    def _vote(self) -> str:
        number, user, value = self._some(), self.rng.randint(1, _USERS), self.rng.choice((1, 1, 1, -1, 0))
        if not number:
            return "nothing there yet"
        answer = self._ask("PUT", f"/comments/{number}/vote", user, {"value": value})
        place = (number, f"u:{user}")
        if answer is None:
            self.notes.doubted_votes.add(place)
            return "an opinion of unknown fate"
        if answer.status_code == 202:
            self.notes.votes[place] = value
            return "an opinion given"
        return f"an opinion refused with {answer.status_code}"

    def _report(self) -> str:
        number = self._some()
        if not number:
            return "nothing there yet"
        user = self.rng.randint(1, _USERS)
        answer = self._ask("POST", f"/comments/{number}/report", user, {"reason": "spam"})
        if answer is None or answer.status_code != 202:
            return "a report that failed"
        self.notes.reports.add((number, f"u:{user}"))
        return "a report"

    def _hide(self) -> str:
        number = self._some()
        if not number:
            return "nothing there yet"
        self._decided.add(number)
        body = {"ids": [str(number)], "status": int(CommentStatus.DELETED), "reason": "压力测试", "dry_run": False}
        answer = self._ask("POST", "/admin/moderate", 0, body)
        if answer is None or answer.status_code != 202 or answer.json()["refused"]:
            return "a decision that failed"
        self.notes.wanted_hidden.add(number)
        return "a comment hidden"

    def _delete(self) -> str:
        number = self._some()
        if not number:
            return "nothing there yet"
        self._decided.add(number)
        answer = self._ask("DELETE", f"/comments/{number}", self._authors[number])
        if answer is None or answer.status_code != 202:
            return "a deletion that failed"
        self.notes.wanted_hidden.add(number)
        return "a comment deleted by its author"

    def _read(self) -> str:
        order, place = self.rng.choice(("new", "likes", "heat", "floor")), self.rng.randint(1, _OBJECTS)
        base, begun = self.rng.choice(self._bases), time.monotonic()
        path = f"/comments/v1/sections/1/{place}/page"
        try:
            answer = self._http.get(f"{base}{path}", params={"sort": order, "size": 50})
        except httpx.TransportError:
            return DOWN
        if answer.status_code != 200:
            return f"a page refused with {answer.status_code}"
        self._look_for_hidden(answer.text, begun, f"{base}{path}?sort={order}")
        return "a page read"

    def _look_for_hidden(self, body: str, begun: float, asked: str) -> None:
        self.notes.pages += 1
        shown = {int(number) for number in _ID.findall(body)}
        for number in shown & self.notes.hidden.keys():
            if (since := begun - self.notes.hidden[number]) > _LOCAL_SECONDS:
                self.notes.served.append(f"{number}, hidden for {since:.1f} s, was in {asked}")

    def _score(self) -> str:
        return "comments scored" if self.ground.launch(self.name, "score_comments") else "a launch that failed"

    def _see_hidden(self) -> None:
        """Note what of the accepted decisions is committed by now."""
        waiting = self.notes.wanted_hidden - self.notes.hidden.keys()
        if not waiting:
            return
        query = select(comment.c.comment_id).where(
            comment.c.comment_id.in_(waiting), comment.c.status == CommentStatus.DELETED
        )
        with reading(self.engine) as connection:
            found = connection.execute(query).scalars().all()
        self.notes.hidden |= dict.fromkeys(map(int, found), time.monotonic())

    # --- what is done to it -------------------------------------------------------------------------------------------

    def harms(self) -> Mapping[str, Harm]:
        """Return what can be done to it."""
        return {
            **super().harms(),
            "a service of comments killed": lambda: self._restart_one(self._services),
            "a worker of comments killed": lambda: self._restart_one(self._workers),
            "Redis killed": self._kill_redis,
            "Redis emptied": self._empty_redis,
        }

    def _kill_run(self) -> bool:
        if not self.ground.under_way(self.name):
            self._score()
        return super()._kill_run()

    def _restart_one(self, processes: list[Process]) -> bool:
        with self._killing:
            process = self.rng.choice(processes)
            process.kill()
            process.start()
        return True

    def _kill_redis(self) -> bool:
        self._redis.kill()
        time.sleep(self.rng.uniform(*_REDIS_DOWN))
        self._redis.start()
        return True

    def _empty_redis(self) -> bool:
        try:
            self._client.flushall()
        except RedisError:
            return False
        return True

    def settled(self) -> bool:
        """Return whether every event is applied and the services answer; then all pages are read once more."""
        self._look_after()
        with reading(self.engine) as connection:
            pending = select(func.count()).where(event.c.state == EventState.PENDING)
            if connection.execute(pending).scalar_one():
                return False
        if not all(map(self._answers, self._bases)) or self.ground.under_way(self.name):
            return False
        self._see_hidden()
        time.sleep(_LOCAL_SECONDS)
        for place in range(1, _OBJECTS + 1):
            self._read_through(place)
        return True

    def _read_through(self, place: int) -> None:
        cursor: str | None = None
        while True:
            begun, path = time.monotonic(), f"{self._bases[0]}/comments/v1/sections/1/{place}/page"
            given = {"sort": "floor", "size": "50", **({"cursor": cursor} if cursor else {})}
            answer = self._http.get(path, params=given)
            if answer.status_code != 200:
                return
            self._look_for_hidden(answer.text, begun, path)
            cursor = answer.json().get("next")
            if not cursor:
                return

    def audit(self) -> list[Finding]:
        """Return what became of each invariant."""
        return audit_comments(self.engine, self.notes)

    def close(self) -> None:
        """Let go of its connections."""
        if hasattr(self, "_http"):
            self._http.close()
            self._client.close()
            self.engine.dispose()
