"""The digest system, as the command line serves it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, Engine, select

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.digest.store.migrations import TREE
from douban_pipeline.digest.store.tables import slot_run
from douban_pipeline.digest.types import SlotStatus
from douban_pipeline.ops.results import CheckResult
from douban_pipeline.ops.source_checks import reached
from douban_pipeline.ops.systems.registry import System


def _pool_limits() -> Mapping[str, int]:
    from douban_pipeline.digest.resources import POOL_LIMITS  # loads Dagster

    return POOL_LIMITS


def _checks(settings: DigestSettings, _engine: Engine) -> Iterator[CheckResult]:
    """Look whether there is something to read, a key of the model, and somebody to tell."""
    if settings.werss_url:
        yield reached("werss", settings.variable("werss_url"), settings.werss_url)
        if not settings.werss_access_key.get_secret_value() and not settings.werss_password.get_secret_value():
            remedy = f"set {settings.variable('werss_password')} or {settings.variable('werss_access_key')}"
            yield CheckResult("werss login", "fail", "WeRSS is named, but no way to log in", remedy)
    elif not settings.feed_sources:
        names = f"{settings.variable('werss_url')} or {settings.variable('feed_sources')}"
        yield CheckResult("sources", "fail", "there is nothing to digest", f"set {names}")
    if settings.deepseek_api_key.get_secret_value():
        yield CheckResult("model", "ok", f"{settings.deepseek_model} at {settings.deepseek_url}")
    else:
        yield CheckResult("model", "warn", "no key of the model", f"set {settings.variable('deepseek_api_key')}")
    if settings.channels:
        yield CheckResult("channels", "ok", f"messages go to {', '.join(settings.channels)}")
    else:
        remedy = f"set {settings.variable('push_channels')}"
        yield CheckResult("channels", "warn", "no channel: reports are pages only, no message is sent", remedy)


def _leased_by(connection: Connection) -> list[str]:
    now = SystemClock().now()
    held = (slot_run.c.status == SlotStatus.RUNNING.value) & (slot_run.c.lease_until > now)
    return sorted(connection.execute(select(slot_run.c.lease_owner.distinct()).where(held)).scalars())


SYSTEM = System(
    name="digest",
    settings=DigestSettings,
    tree=TREE,
    pool_limits=_pool_limits,
    location="douban_pipeline.locations.digest",
    checks=_checks,
    leased_by=_leased_by,
)
