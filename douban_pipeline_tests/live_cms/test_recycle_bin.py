"""What lies in the CMS's recycle bin is not asked for, written, listed or counted; what comes back goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from douban_pipeline.douban.reports.lists.catalogue import LISTS
from douban_pipeline.douban.reports.lists.duplicate_groups import equal_titles
from douban_pipeline.douban.reports.lists.keyset import ListFilter
from douban_pipeline.douban.reports.lists.spec import rows_of
from douban_pipeline.douban.reports.lists.statistics import statistics
from douban_pipeline_tests.harness.fixtures.scenario import subject
from douban_pipeline_tests.live_cms.live_site import Film, LiveSite
from douban_pipeline_tests.live_cms.test_admin import SHIPPED, WIDE

TWINS = "two videos of one subject"


@dataclass(frozen=True)
class Case:
    """A film before it was deleted: where it stood, what lists had it, and what it was counted as."""

    title: str
    status: str
    lists: frozenset[str]
    counted: frozenset[str]
    of_the_site: Mapping[str, Any]


CASES = {
    "a linked film": Case("雾港来信", "CONFIRMED", frozenset(), frozenset({"total", "with_id"}), {}),
    "a film in review": Case(
        "石桥镇的夏天",
        "REVIEW",
        frozenset({"review", "missing"}),
        frozenset({"total", "without_id", "missing", "in_review"}),
        {"vod_director": "", "vod_actor": "", "vod_year": ""},
    ),
    "a film that nobody knows": Case(
        "蓝布衫与铁皮船",
        "NOT_FOUND",
        frozenset({"missing"}),
        frozenset({"total", "without_id", "missing", "not_found"}),
        {"vod_name": "谁也没有听说过"},
    ),
    TWINS: Case("锦鲤池边旧事", "CONFIRMED", frozenset({"duplicates"}), frozenset({"total", "with_id", "shared"}), {}),
    "a film with a locked id": Case(
        "萤火照亮渡船", "CONFIRMED", frozenset({"locked"}), frozenset({"total", "with_id", "locked_ids"}), {}
    ),
}
BROKEN_BY_TIME = {"due_now", "due_today", "done_today", "failed_today", "open_tasks", "unwritten", "decisions"}


def listed(site: LiveSite, film: Film) -> set[str]:
    """Return the lists and pages that have the film."""
    services = site.library.services
    found = set()
    for name in ("review", "missing", "duplicates", "locked", "intros"):
        rows = rows_of(services, LISTS[name](services), ListFilter())
        found |= {name} if film.vod_id in {row["vod_id"] for row in rows} else set()
    same_titles = {vod_id for group in equal_titles(services) for vod_id in group}
    return found | ({"duplicates"} if film.vod_id in same_titles else set())


def counted(site: LiveSite) -> dict[str, int]:
    numbers = statistics(site.library.services).counts()
    return {name: number for name, number in numbers.items() if name not in BROKEN_BY_TIME}


@pytest.mark.parametrize(("name", "number"), [(name, number) for number, name in enumerate(CASES)], ids=[*CASES])
def test_a_deleted_film_is_left_alone_until_it_is_restored(site: LiveSite, name: str, number: int) -> None:
    case = CASES[name]
    film = site.film(subject(90_210_000 + number, case.title), **case.of_the_site)
    if name == TWINS:
        third = film.subject["actors"][2]  # by director or by the first two it would be the same video to the collector
        twin = site.film(film.subject, vod_director="", vod_actor=third)
        assert site.state(twin)["vod_douban_id"] == film.subject["id"]
    if "locked" in case.lists:
        site.library.set_state(film.vod_id, douban_id_locked=True, douban_id_lock_time=site.library.clock.now())
    site.remember(film)
    before = counted(site)
    assert site.state(film)["douban_review_status"] == case.status
    assert listed(site, film) == case.lists

    assert site.cms.admin.delete(film.vod_id)["msg"] == "已移入回收站"
    assert {*site.changed(film)} == {"vod_recycle_time"}
    assert listed(site, film) == set(), "before anybody looked"
    site.make_due(film)
    asked = site.asked_for(film)
    site.judge(film)
    assert site.state(film)["douban_next_sync_at"] is None
    after = counted(site)
    less = 2 if name == TWINS else 1
    assert {name: before[name] - after[name] for name in before if before[name] != after[name]} == {
        counts: less if counts == "shared" else 1 for counts in case.counted
    }
    site.cms.set_rules(uprule=WIDE)
    site.collect_again(film, vod_content="<p>采集又改的简介。</p>", **case.of_the_site)
    site.cms.set_rules(uprule=SHIPPED)
    site.look()
    site.sweep()
    site.judge(film)
    assert (site.asked_for(film), site.written(film), site.refused(film), site.said(film)) == (asked, [], [], set())
    assert site.state(film)["douban_next_sync_at"] is None
    assert listed(site, film) == set()

    assert site.cms.restore(film.vod_id)["code"] == 1
    site.sweep()
    assert site.state(film)["douban_next_sync_at"] == site.library.clock.now()
    assert site.state(film)["douban_review_status"] == case.status
    site.judge(film)
    assert listed(site, film) == case.lists
    assert counted(site) == before
    site.pass_time(minutes=5)


def test_a_film_deleted_for_good_is_given_up(site: LiveSite) -> None:
    film = site.film(subject(90_210_900, "青石板下的回声"))
    before = counted(site)
    site.cms.purge(film.vod_id)
    assert site.library.query("SELECT vod_id FROM mac_vod WHERE vod_id = :vod", vod=film.vod_id) == []
    site.sweep()
    state = site.state(film)
    assert (state["douban_next_sync_at"], state["douban_review_reason"]) == (None, "影片已从 CMS 中删除")
    after = counted(site)
    assert {name: before[name] - after[name] for name in before if before[name] != after[name]} == {
        "total": 1,
        "with_id": 1,
    }
    assert listed(site, film) == set()
