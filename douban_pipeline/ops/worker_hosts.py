"""Checks whether this host may run jobs of all installed systems, and names the modules its workers preload."""

from __future__ import annotations

from douban_pipeline.core.clock import SystemClock
from douban_pipeline.dagster_kit.worker_host import check_worker_host
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings
from douban_pipeline.ops.systems import registry


def check_host() -> list[str]:
    """Return warnings about this host: problems that do not prevent work.

    Raises:
        WorkerHostError: The host must not work in its current state.
        SettingsError: A setting is wrong.
    """
    with_douban, others = registry.chosen(None)
    warnings: list[str] = []
    if with_douban:
        services = open_services(load_settings())
        try:
            warnings += check_worker_host(services.engine, services.clock, services.ready)
        finally:
            services.close()
    for system in others:
        with registry.installed(system) as there:
            warnings += check_worker_host(there.engine, SystemClock(), there.ready)
    return list(dict.fromkeys(warnings))


def locations() -> list[str]:
    """Return the modules of the installed code locations."""
    with_douban, others = registry.chosen(None)
    own = ["douban_pipeline.definitions"] if with_douban else []
    return [*own, *(system.location for system in others if system.location)]
