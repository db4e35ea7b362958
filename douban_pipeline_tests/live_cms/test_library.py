"""A library of real records, from a resource site's answers to links, by the pipeline's own sensors and Dagster's runs.

The records and the subjects stand beside the checkout, as the CMS does.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import pytest
from sqlalchemy import make_url

from douban_pipeline.douban.jobs import CHAIN
from douban_pipeline.douban.sensors import due_videos_sensor, intake_sensor
from douban_pipeline.douban.undo.assets import cms_drift
from douban_pipeline_tests.conftest import missing, server_url
from douban_pipeline_tests.harness.fixtures.scenario import Scenario, subject
from douban_pipeline_tests.harness.rig.dagster_stack import free_port
from douban_pipeline_tests.harness.rig.live_cms import SCRIPTS, LiveCms
from douban_pipeline_tests.harness.rig.processes import Process
from douban_pipeline_tests.live_cms.live_site import FLAG, LiveSite, live_site
from douban_pipeline_tests.live_cms.test_admin import WIDE

ROWS = 40
"""Videos that the resource site offers, a tenth of them without a subject."""
MATCHSET = SCRIPTS.parent / "matchset"
CATEGORIES = {1: 6, 2: 13, 3: 3, 4: 4, 5: 11, 6: 16}
"""Where the CMS puts the categories of the resource site."""
FACTS = (
    *("original_title", "aka", "year", "regions", "directors", "actors", "genres", "duration_min", "episodes", "kind"),
    *("rating", "votes"),
)
"""What is known of a subject of the corpus."""


def read(name: str) -> Iterator[dict[str, Any]]:
    with lzma.open(MATCHSET / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@pytest.fixture
def turn(tmp_path: Path) -> Path:
    """The file that says how often the resource site has been updated."""
    return tmp_path / "round"


@pytest.fixture
def source(tmp_path: Path, turn: Path) -> Iterator[int]:
    """The port of the resource site."""
    port = free_port()
    command = [sys.executable, "-B", str(SCRIPTS / "resource_site.py"), str(port), str(ROWS), str(turn)]
    process = Process("resource site", command, log=tmp_path / "source.log", environment={}, directory=tmp_path)

    def answers() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/?ac=list", timeout=10, trust_env=False).is_success
        except httpx.TransportError:
            return False

    with process:
        process.wait_until(answers, seconds=60)
        yield port


@pytest.fixture
def place(tmp_path: Path, dagster_instance: dg.DagsterInstance) -> Iterator[LiveSite]:
    """A site of its own, with a library that nobody took in."""
    if not MATCHSET.is_dir():
        missing("cms", f"no labelled records in {MATCHSET}")
    with LiveCms(tmp_path / "cms", make_url(server_url("mariadb")), f"douban_test_library_{free_port()}") as cms:
        for theirs, ours in CATEGORIES.items():
            cms.admin.bind(FLAG, theirs, ours)
        with live_site(cms, tmp_path / "home", dagster_instance, max_due_wait_minutes=0) as site:
            yield site


def tick(scenario: Scenario, sensor: dg.SensorDefinition) -> list[dg.RunRequest] | str:
    """Return the runs that a sensor asks for, or why it asks for none."""
    with dg.DagsterInstance.ephemeral() as none_ran:
        context = dg.build_sensor_context(instance=none_ran, resources={"services": scenario.services})
        result = sensor(context)
    if isinstance(result, dg.SkipReason):
        return result.skip_message or ""
    return [result] if isinstance(result, dg.RunRequest) else list(result.run_requests or [])


def work_off(scenario: Scenario) -> int:
    """Launch what the sensors ask for until they ask for nothing; return how many runs of the chain that took."""
    runs = 0
    wanted = tick(scenario, intake_sensor)
    if not isinstance(wanted, str):
        assert scenario.launch("take_in_changes", {"take_in": {"config": {"dry_run": False}}}).success
    while not isinstance(wanted := tick(scenario, due_videos_sensor), str):
        for request in wanted:
            assert scenario.launch(CHAIN, tags=request.tags, partition_key=request.partition_key).success
            runs += 1
        scenario.clock.advance(minutes=10)
    return runs


def videos(site: LiveSite) -> Mapping[str, Mapping[str, Any]]:
    return {row["vod_name"]: row for row in site.library.query("SELECT * FROM mac_vod")}


@pytest.mark.long
def test_a_library_is_collected_judged_and_collected_again(place: LiveSite, source: int, turn: Path) -> None:
    true_ids: dict[str, set[int]] = {}
    for row in read("gold_second.jsonl.xz"):
        true_ids.setdefault(row["vod_name"], set()).add(int(row["douban_id"]))
    place.cms.set_rules(inrule=",a")  # by name: people who act in two films make them one otherwise
    place.cms.collect(FLAG, source)
    collected = videos(place)
    assert ROWS * 0.9 <= len(collected) <= ROWS
    wanted = {douban_id for name in collected for douban_id in true_ids.get(name, ())}
    starts = {name[:2] for name in collected}
    place.told(
        *(
            subject(int(each["id"]), each["title"], **{k: v for k, v in each.items() if k in FACTS and v})
            for each in read("corpus_full.jsonl.xz")
            if int(each["id"]) in wanted or any(title[:2] in starts for title in (each["title"], *each["aka"]))
        )
    )

    scenario = place.scenario
    assert tick(scenario, intake_sensor) == "影视库还没有接入：请以 dry_run: false 启动作业 initialise_library"
    assert scenario.launch(
        "initialise_library", {"initialise": {"config": {"dry_run": False, "spread": False}}}
    ).success
    assert work_off(scenario) > 0
    linked = {name: row["vod_douban_id"] for name, row in videos(place).items() if row["vod_douban_id"]}
    assert len(linked) > ROWS // 5
    assert {name: found for name, found in linked.items() if found not in true_ids.get(name, ())} == {}
    assert work_off(scenario) == 0

    turn.write_text("2")
    place.cms.set_rules(uprule=WIDE)
    place.cms.collect(FLAG, source)
    updated = videos(place)
    assert all("第2轮采集的" in row["vod_content"] for row in updated.values())
    assert {name: row["vod_douban_id"] for name, row in updated.items() if row["vod_douban_id"]} == linked
    work_off(scenario)
    after = videos(place)
    assert {name: row["vod_content"] for name, row in after.items()} == {
        name: row["vod_content"] for name, row in updated.items()
    }, "nobody writes over what the collector brought"
    assert {name: after[name]["vod_douban_id"] for name in linked} == linked
    assert tick(scenario, intake_sensor) == "CMS 没有新增或改动的影片"

    report = dg.materialize([cms_drift], resources={"services": scenario.services}, instance=scenario.instance)
    [event] = report.get_asset_materialization_events()
    assert event.materialization.metadata["serious"].value == 0
    [check] = report.get_asset_check_evaluations()
    assert check.passed
