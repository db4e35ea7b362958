"""The demo of comments: taken in, ordered, a rule tried and applied, one deleted everywhere and brought back."""

from __future__ import annotations

import dagster as dg
import numpy as np
import pytest
from pydantic import SecretStr
from rich.console import Console

from douban_pipeline.comments.services import open_services
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.store.sections import find_section
from douban_pipeline.core.database import reading
from douban_pipeline.demo import comments
from douban_pipeline.demo import embedded_redis as embedded
from douban_pipeline.demo.comment_sample import WITHOUT_LIKE, generate
from douban_pipeline.demo.talk import OBJECT_ID


@pytest.mark.parametrize("with_redis", [True, False])
def test_comments_are_ordered_a_rule_moves_one_and_a_deleted_one_is_gone_everywhere(with_redis, tmp_path, monkeypatch):
    if not with_redis:
        monkeypatch.setattr(embedded, "redis_program", lambda: None)
    console = Console(record=True, width=200)
    with dg.DagsterInstance.ephemeral() as instance:
        well = comments.run_section(tmp_path, instance, console, comments=400)
    said = console.export_text()
    assert well, said
    assert ("no redis-server is found" in said) == (not with_redis and embedded.redis_program() is None)
    assert "第 3 名，共" in said
    assert "in force as revision 1" in said
    assert "now in 0 of them" in said


def test_what_is_prepared_for_dev_waits_for_its_worker_once(tmp_path, monkeypatch):
    monkeypatch.setattr(comments, "COMMENTS", 50)
    url = SecretStr(f"sqlite:///{tmp_path / 'library.sqlite'}")
    settings = CommentsSettings(_env_file=None, home=tmp_path, library_url=url)
    for _ in range(2):
        comments.prepare_section(settings)
    services = open_services(settings, "test").ready()
    with reading(services.engine) as connection:
        section = find_section(connection, 1, comments.film())
        waiting = connection.exec_driver_sql("SELECT count(*) FROM cmt_event").scalar()
    services.close()
    assert section is not None
    assert section["title"]
    assert comments.film() != OBJECT_ID, "`make demo` in the same folder counts on that section"
    assert 40 <= waiting <= 50, "comments without a text are left out"


def test_the_sample_has_the_shape_that_was_measured():
    made = generate(50_000, seed=3)
    assert abs(float(np.mean(made.likes == 0)) - WITHOUT_LIKE) < 0.02
    assert 2 <= np.quantile(made.likes, 0.9) <= 12, "a heavy tail"
    assert made.likes.max() > 3000
