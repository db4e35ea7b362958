"""The demo of the daily digest: one day of five slots on a simulated clock, through Dagster, with the report's link."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from email.message import Message
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
from rich.console import Console

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.core.database import reading
from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.core.terminal_table import Table
from douban_pipeline.demo.feeds import SteppedClock
from douban_pipeline.demo.outcomes import DemoOutcome
from douban_pipeline.demo.sample import read_data
from douban_pipeline.demo.stand_ins.answers import HttpAnswer, json_answer
from douban_pipeline.demo.stand_ins.http_server import LoopbackStandIn
from douban_pipeline.demo.stand_ins.werss import ACCOUNT, PASSWORD, Article, DigestServer, WeRssStandIn
from douban_pipeline.digest.definitions import build_defs
from douban_pipeline.digest.partitions import partition_of
from douban_pipeline.digest.services import DigestServices, open_services
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.slots import SlotKey
from douban_pipeline.digest.store import slots
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline.digest.wording import SLOT_STATUSES


def run_digest(home: Path, instance: dg.DagsterInstance, console: Console) -> DemoOutcome:
    """Run yesterday's five slots and their pushes through Dagster, except those already run.

    Args:
        home: The demo's folder; the tables are in a file in it.
        instance: Dagster's instance.
        console: Where to print.
    """
    database = f"sqlite:///{home / 'digest.sqlite'}"
    zone = DigestSettings.load(home=home, database_url=database).zone
    day = SystemClock().now().astimezone(zone).date() - timedelta(days=1)
    clock = SteppedClock(_moment(zone, day, 0.0))
    werss = WeRssStandIn(lambda: clock.at, accounts=_accounts(), articles=_articles(zone, day))
    with DigestServer(werss) as server, _Robot() as robot:
        settings = DigestSettings.load(
            home=home,
            database_url=database,
            werss_url=server.base,
            werss_username=ACCOUNT,
            werss_password=PASSWORD,
            deepseek_url=server.model_url,
            deepseek_api_key="demo",
            push_channels=f"wecom=wecom+{robot.base}/cgi-bin/webhook/send?key=demo-key-0123456789abcdef",
        )
        services = open_services(settings, clock).ready()
        console.print(
            terminal_text("articles   {url} (bundled WeRSS and model, this machine only)").format(url=server.base)
        )
        with reading(services.engine) as connection:
            before = {row.slot for row in slots.of_day(connection, day) if row.status == SlotStatus.SUCCESS}
        due = [slot for slot in settings.schedule_slots if slot not in before]
        ended = [_slot(services, instance, clock, SlotKey(day, slot)) for slot in due]
        _print(services, console, day)
        console.print(
            terminal_text("{count} messages taken by a robot: {titles}").format(
                count=len(robot.titles), titles="; ".join(robot.titles)
            ),
            soft_wrap=True,
        )
        services.close()
    done = (
        terminal_text("{slots} slots of {day}, {messages} messages pushed").format(
            day=day, slots=len(due), messages=len(robot.titles)
        )
        if due
        else terminal_text("nothing was due")
    )
    return DemoOutcome(all(ended), done)


class _Robot(LoopbackStandIn):
    """A bot of WeCom that takes every message."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    def respond(self, _method: str, _target: str, body: bytes, _headers: Message) -> HttpAnswer:
        self.titles.append(json.loads(body)["markdown"]["content"].partition("\n")[0].strip("*"))
        return json_answer({"errcode": 0, "errmsg": "ok"})


@contextmanager
def serve_today() -> Iterator[dict[str, str]]:
    """Serve yesterday's and today's articles and the model; yield the environment variables for them."""
    clock = SystemClock()
    zone = DigestSettings.load().zone
    today = clock.now().astimezone(zone).date()
    articles = [article for day in (today - timedelta(days=1), today) for article in _articles(zone, day)]
    werss = WeRssStandIn(lambda: clock.now().timestamp(), accounts=_accounts(), articles=articles)
    with DigestServer(werss) as server:
        values = {
            "werss_url": server.base,
            "werss_username": ACCOUNT,
            "werss_password": PASSWORD,
            "deepseek_url": server.model_url,
            "deepseek_api_key": "demo",
        }
        yield {DigestSettings.variable(name): value for name, value in values.items()}


def _moment(zone: ZoneInfo, day: date, hour: float) -> float:
    return datetime.combine(day, datetime.min.time(), zone).timestamp() + hour * 3600


def _accounts() -> dict[str, str]:
    return dict(read_data("articles.json")["accounts"])


def _articles(zone: ZoneInfo, day: date) -> list[Article]:
    """Return a day's articles; each states the score that the simulated model gives it."""
    ids = list(_accounts())
    return [
        Article(
            f"{ids[each['account']][-10:]}-{day:%m%d}-{number}",
            ids[each["account"]],
            each["title"],
            _moment(zone, day, each["hour"]),
            f"<section><p>{each['text']}</p><p>（样值 {each['score']}）</p></section>",
            description=each["text"][:30],
        )
        for number, each in enumerate(read_data("articles.json")["articles"], 1)
    ]


def _slot(services: DigestServices, instance: dg.DagsterInstance, clock: SteppedClock, key: SlotKey) -> bool:
    clock.at = max(clock.at, key.scheduled_at(services.settings.zone).timestamp())
    repository = build_defs(settings=services.settings, resource_overrides={"services": services}).get_repository_def()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    slot = repository.get_job("run_digest_slot").execute_in_process(
        instance=instance, raise_on_error=False, run_config=quiet, partition_key=partition_of(key)
    )
    clock.at += 60
    pushed = repository.get_job("push_notifications").execute_in_process(
        instance=instance, raise_on_error=False, run_config={**quiet, "ops": {"push": {"config": {"dry_run": False}}}}
    )
    return slot.success and pushed.success


def _print(services: DigestServices, console: Console, day: date) -> None:
    heads = (
        terminal_text("slot"),
        terminal_text("status"),
        terminal_text("new"),
        terminal_text("analysed"),
        terminal_text("findings", "demo"),
        terminal_text("best"),
    )
    table = Table(*heads, title=terminal_text("The digest of {day}").format(day=day))
    with reading(services.engine) as connection:
        rows = slots.of_day(connection, day)
    for row in rows:
        names = ("articles_new", "analysed", "findings", "best_score")
        numbers = ["—" if row.counters.get(name) is None else str(row.counters[name]) for name in names]
        table.add_row(
            row.slot, SLOT_STATUSES[row.status] if terminal_language() == "zh" else row.status.lower(), *numbers
        )
    console.print(table)
