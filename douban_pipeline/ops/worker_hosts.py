"""Checks whether this host may run jobs of all installed systems, and names the modules its workers preload."""

from __future__ import annotations

from douban_pipeline.core.system import chosen
from douban_pipeline.dagster_kit.worker_host import check_worker_host


def check_host() -> list[str]:
    """Return warnings about this host: problems that do not prevent work.

    Raises:
        WorkerHostError: The host must not work in its current state.
        SettingsError: A setting is wrong.
    """
    warnings: list[str] = []
    for system in chosen():
        with system.opened() as services:
            warnings += check_worker_host(services.engine, services.clock, services.ready)
    return list(dict.fromkeys(warnings))


def locations() -> list[str]:
    """Return the modules of the installed code locations."""
    return [system.location for system in chosen()]
