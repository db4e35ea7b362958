"""The Celery app of a worker host: ``celery -A douban_pipeline.ops.celery_app worker``.

Importing this module reads ``$DAGSTER_HOME/dagster.yaml``, which must launch runs by Celery.
"""

from __future__ import annotations

import os

from douban_pipeline.dagster_kit.celery_app import build_app
from douban_pipeline.dagster_kit.worker_host import check_host, locations

app = build_app(os.environ.get("DAGSTER_HOME", ""), check_host=check_host, preload=locations())
