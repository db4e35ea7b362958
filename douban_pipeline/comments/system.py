"""The comment system, as the command line, the service and Dagster see it."""

from douban_pipeline.core.system import System, SystemPart

SYSTEM = System(
    name="comments",
    title="评论",
    page="/assets/comment_review_queue",
    settings=SystemPart("douban_pipeline.comments.settings:CommentsSettings"),
    operations=SystemPart("douban_pipeline.comments.operations:OPERATIONS"),
    mounts=SystemPart("douban_pipeline.comments.mounts:mounts"),
    commands=SystemPart("douban_pipeline.comments.commands:commands"),
    libraries=("ahocorasick", "jwt", "redis", "rule_engine"),
)
