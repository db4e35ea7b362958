"""What the review hands over to the code location: its asset, and the jobs in which people decide."""

from douban_pipeline.douban.review.assets import assets
from douban_pipeline.douban.review.batch.jobs import jobs as batch_jobs
from douban_pipeline.douban.review.imports.jobs import jobs as import_jobs
from douban_pipeline.douban.review.jobs import jobs as review_jobs

__all__ = ["assets", "jobs"]

jobs = [*review_jobs, *batch_jobs, *import_jobs]
