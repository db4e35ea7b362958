"""${message}."""

from alembic import context, op
import sqlalchemy as sa

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
release = ""  # the release that brings it




def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
