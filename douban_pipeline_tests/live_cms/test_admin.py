"""What people and the collector do to a film that the pipeline has judged, through the CMS's own code, as a table.

After each: what stands in the CMS, what was logged, where the film stands and why, and what the report on drift says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from unittest.mock import ANY

import pytest

from douban_pipeline_tests.harness.fixtures.scenario import subject
from douban_pipeline_tests.live_cms.live_site import Change, Film, LiveSite, Said

ANOTHER = subject(90_299_999, "完全不同的另一部", 1987)
"""A subject that is no film's of the table."""

FACTS = frozenset({"vod_douban_score", "vod_duration", "vod_lang", "vod_pic", "vod_pubdate", "vod_tag", "vod_writer"})
"""What the pipeline writes beside the id of a film that the resource site knows."""
LINK: Change = ("pipeline", "link", FACTS | {"vod_douban_id"})

PUT_BACK, EDITED, ID, APART = (
    "被改回写入之前的值",
    "之后的普通改动",
    "豆瓣 ID 被改",
    "简介仍是写入的，显示的摘要却不是它的开头",
)
LOCKED = "锁定的值被改"
STALE, SAVED, ANNOTATED = "过期的后台表单", "CMS 保存或采集更新", "采纳的 AI 标注、批量编辑或其他程序直接改库"
PROGRAM = "其他程序直接改库或批量编辑"

UNTIMED_FORM = {"vod_pic_screenshot": "", "vod_play_server": "no"}
SAVED_FORM = {**UNTIMED_FORM, "vod_time": ANY}
"""What every save of a form changes, with 更新时间 ticked and without."""


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        does: What somebody does.
        cms: The columns of the CMS that are not as before, once the pipeline has done its part; all others are.
        written: What was logged.
        status: Where the film stands.
        douban_id: What our state has it linked to; -1 for its own subject.
        reason: What the state says as soon as the change is seen.
        judged: What it says after the next visit; the same by default.
        said: What the report on drift says before the change is seen.
        said_after: What it says after the next visit.
        swept: Whether only the sweep sees it, for `vod_time` stays.
        of_the_site: What the resource site says of it.
    """

    does: Callable[[LiveSite, Film], object]
    cms: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[Change, ...] = ()
    status: str = "CONFIRMED"
    douban_id: int = -1
    reason: str = ""
    judged: str | None = None
    said: frozenset[Said] = frozenset()
    said_after: frozenset[Said] = frozenset()
    swept: bool = False
    of_the_site: Mapping[str, Any] = field(default_factory=dict)


def saved(**changes: Any) -> Callable[[LiveSite, Film], object]:
    """Open the form, change some fields, save."""
    return lambda site, film: site.cms.admin.save(site.cms.admin.open(film.vod_id), **changes)


def typed_its_id(site: LiveSite, film: Film) -> object:
    return saved(vod_douban_id=film.subject["id"])(site, film)


def annotated(site: LiveSite, film: Film) -> object:
    """Adopt what a model says of the film: tags, a summary and another category."""
    site.library.execute(
        "INSERT INTO mac_content_ai_annotation (mid, content_id, ai_tags, ai_summary, ai_type_id)"
        " VALUES (1, :vod, '机器,标签', '机器写的摘要', 11)",
        vod=film.vod_id,
    )
    answer = site.cms.adopt(film.vod_id)
    assert answer["code"] == 1, answer
    return answer


def locked_and_cleared(site: LiveSite, film: Film) -> object:
    """Lock the id as a reviewer does, then clear it in the form."""
    lock = {"vod_id": film.vod_id, "action": "lock_id"}
    config = {"reviewer": "小李", "note": "核对过", "dry_run": False, "decisions": [lock]}
    assert site.scenario.launch("record_decisions", {"store_decisions": {"config": config}}).success
    site.judge(film)
    site.pass_time(minutes=5)
    site.remember(film)
    return saved(vod_douban_id=0)(site, film)


WIDE = ",a,b,c,d,e,f,g,h,k,l,n,r"
"""Rules of a collector that updates nearly everything: play addresses, serial, remarks, director, actors, year, area,
synopsis, tags, genres and blurb."""
SHIPPED = ",a"


def collected_with(rules: str, **columns: Any) -> Callable[[LiveSite, Film], object]:
    """Let the collector come by again, by other rules of what it updates."""

    def collect(site: LiveSite, film: Film) -> object:
        site.cms.set_rules(uprule=rules)
        try:
            return site.collect_again(film, **columns)
        finally:
            site.cms.set_rules(uprule=SHIPPED)

    return collect


NEXT_EPISODE = {"vod_play_url": "第01集$https://v.example.com/1.m3u8#第02集$https://v.example.com/2.m3u8"}
ONE_ACTOR = "断桥甲"
"""Whom the film and what the source says of it have in common: by the shipped rules that makes it the same."""
SOURCE_SAYS = {
    **NEXT_EPISODE,
    "vod_remarks": "更新至02集",
    "vod_actor": f"{ONE_ACTOR},来源的演员",
    "vod_content": "<p>来源的新简介。</p>",
    "vod_blurb": "来源的摘要",
    "vod_tag": "来源标签",
    "vod_class": "喜剧",
}

CASES = {
    "a form saved with nothing changed": Case(saved(uptime=1), SAVED_FORM),
    "a form saved with nothing changed, the time left": Case(saved(uptime=0), UNTIMED_FORM),
    "a form saved late": Case(
        lambda site, film: site.cms.admin.save(film.form),
        SAVED_FORM,
        (LINK,),
        reason="CMS 中保存了写入之前打开的表单，写入的内容都被改回：重新匹配",
        judged="",
        said=frozenset({("vod_douban_id", ID, STALE)} | {(column, PUT_BACK, STALE) for column in FACTS}),
    ),
    "an id cleared, nothing else": Case(
        saved(vod_douban_id=0),
        {**SAVED_FORM, "vod_douban_id": 0},
        (("cms", "clear_id", frozenset({"vod_douban_id"})),),
        status="REVIEW",
        douban_id=0,
        reason="在 CMS 后台被清空：不再自动关联它，请另选条目，或确认没有条目",
        judged="得分 100.0；此匹配曾被撤销，或在 CMS 后台被清空。",
        said=frozenset({("vod_douban_id", ID, SAVED)}),
    ),
    "a locked id cleared": Case(
        locked_and_cleared,
        {**SAVED_FORM, "vod_douban_id": 0},
        reason="在 CMS 中被改为 0",
        said=frozenset({("vod_douban_id", LOCKED, SAVED)}),
        said_after=frozenset({("vod_douban_id", LOCKED, SAVED)}),
    ),
    "an id replaced by another subject's": Case(
        saved(vod_douban_id=ANOTHER["id"]),
        {**SAVED_FORM, "vod_douban_id": ANOTHER["id"]},
        status="REVIEW",
        douban_id=ANOTHER["id"],
        reason="豆瓣 ID 在 CMS 中被修改",
        judged="CMS 中已有豆瓣 ID 90299999，匹配结果为 90200005，需人工确认",
        said=frozenset({("vod_douban_id", ID, SAVED)}),
        said_after=frozenset({("vod_douban_id", ID, SAVED)}),
    ),
    "an id typed where none was linked": Case(
        typed_its_id,
        {
            **SAVED_FORM,
            **dict.fromkeys(("vod_lang", "vod_pic", "vod_pubdate", "vod_tag", "vod_duration", "vod_writer"), ANY),
            **dict.fromkeys(("vod_director", "vod_actor", "vod_year", "vod_douban_id"), ANY),
            "vod_douban_score": Decimal("7.9"),
        },
        (("pipeline", "sync", FACTS | {"vod_director", "vod_actor", "vod_year"}),),
        reason="豆瓣 ID 在 CMS 中被修改",
        judged="",
        of_the_site={"vod_director": "", "vod_actor": "", "vod_year": ""},
    ),
    "writer and synopsis edited": Case(
        saved(vod_writer="编辑改的", vod_content="<p>编辑写的简介。</p>"),
        {**SAVED_FORM, "vod_writer": "编辑改的", "vod_content": "<p>编辑写的简介。</p>"},
        said=frozenset({("vod_writer", EDITED, SAVED)}),
        said_after=frozenset({("vod_writer", EDITED, SAVED)}),
    ),
    "director and year edited": Case(
        saved(vod_director="另一位", vod_year="1999"),
        {**SAVED_FORM, "vod_director": "另一位", "vod_year": "1999"},
        status="REVIEW",
        judged="除冲突项外相近；年份冲突：差 25 年；导演冲突：本地 另一位",
    ),
    "an AI annotation adopted": Case(
        annotated,
        {"vod_tag": "机器,标签", "vod_blurb": "机器写的摘要", "type_id": 11},
        said=frozenset({("vod_tag", EDITED, ANNOTATED), ("vod_blurb", APART, ANNOTATED)}),
        said_after=frozenset({("vod_tag", EDITED, ANNOTATED), ("vod_blurb", APART, ANNOTATED)}),
        swept=True,
        of_the_site={"vod_content": ""},
    ),
    "another category in the list": Case(
        lambda site, film: site.cms.set_in_list(film.vod_id, "type_id", 11),
        {"type_id": 11},
        swept=True,
    ),
    "collected again by the shipped rules": Case(
        collected_with(SHIPPED, **NEXT_EPISODE), {**NEXT_EPISODE, "vod_time": ANY}
    ),
    "collected again by wide rules": Case(
        collected_with(WIDE, **SOURCE_SAYS),
        {**SOURCE_SAYS, "vod_class": "剧情,动作,喜", "vod_time": ANY},  # merged, and 剧 taken from its end
        said=frozenset({("vod_tag", EDITED, SAVED)}),
        said_after=frozenset({("vod_tag", EDITED, SAVED)}),
    ),
    "collected again by wide rules, of other people": Case(
        collected_with(WIDE, **NEXT_EPISODE, vod_director="来源的导演", vod_year="2019", vod_area="香港"),
        {**NEXT_EPISODE, "vod_director": "来源的导演", "vod_year": "2019", "vod_area": "香港", "vod_time": ANY},
        status="REVIEW",
        judged="除冲突项外相近；年份冲突：差 5 年；地区冲突：本地 香港 / 豆瓣 中国大陆；导演冲突",
    ),
}
TITLES = (
    *("渡口旁的旧邮局", "磨坊夜话录", "北岸无人值守", "铜铃响过三巡", "折叠伞修理铺", "荒原列车时刻表", "瓷窑烟火人家"),
    *("云梯消防队长", "盐湖边的歌手", "木偶师的冬天", "候鸟观察笔记", "竹林深处问茶", "断桥与新来的人", "灰鹤飞越山口"),
)


@pytest.mark.parametrize(("name", "number"), [(name, number) for number, name in enumerate(CASES)], ids=[*CASES])
def test_what_becomes_of_it(site: LiveSite, name: str, number: int) -> None:
    case = CASES[name]
    film = site.film(subject(90_200_000 + number, TITLES[number]), ANOTHER, **case.of_the_site)
    case.does(site, film)
    said = site.said(film)
    site.look()
    if case.swept:
        assert site.state(film)["type_id"] == film.before["type_id"], "vod_time stays"
        site.sweep()
        assert site.state(film)["douban_next_sync_at"] == site.library.clock.now()
    seen = site.state(film)["douban_review_reason"]
    for _ in range(2):  # what holds after one visit holds after the next
        site.make_due(film)
        site.judge(film)
        site.pass_time(minutes=5)
    state = site.state(film)
    assert (state["douban_review_status"], state["vod_douban_id"]) == (
        case.status,
        film.subject["id"] if case.douban_id == -1 else case.douban_id,
    )
    assert case.reason in seen
    assert (case.reason if case.judged is None else case.judged) in state["douban_review_reason"]
    assert bool(seen) is bool(case.reason)
    assert site.changed(film) == case.cms
    assert tuple(site.written(film)) == case.written
    assert said == case.said
    assert site.said(film) == case.said_after
    assert site.refused(film) == []
