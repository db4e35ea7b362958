"""The Celery app of a worker host: ``celery -A douban_pipeline.ops.celery_app worker``.

Importing this module reads ``$DAGSTER_HOME/dagster.yaml``, which must launch runs by Celery.
"""

from __future__ import annotations

import os

from douban_pipeline.dagster_kit.celery_app import build_app
from douban_pipeline.dagster_kit.worker_host import check_worker_host
from douban_pipeline.douban.services import open_services
from douban_pipeline.douban.settings import load_settings


def check_host() -> list[str]:
    """Return what is not as it should be on this host; raise `WorkerHostError` if it must not work."""
    services = open_services(load_settings())
    try:
        return check_worker_host(services)
    finally:
        services.close()


app = build_app(os.environ.get("DAGSTER_HOME", ""), check_host=check_host, preload=["douban_pipeline.definitions"])
