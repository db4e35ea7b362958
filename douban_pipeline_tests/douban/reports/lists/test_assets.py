"""The lists as Dagster publishes them: numbers, tables and pages; nothing is written to the CMS."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import dagster as dg
import pytest

from douban_pipeline.core.ui.lists.shown_cells import IN_UI
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.intros.author import NO_SOURCE
from douban_pipeline_tests.douban.reports.planting import (
    ASSETS,
    FILES,
    HOSTILE,
    change,
    decision,
    intro,
    launched,
    linked,
    materialize,
    publish_asset,
    task,
    verdict,
)
from douban_pipeline_tests.harness.fixtures.library import Library, video
from douban_pipeline_tests.harness.fixtures.locations import fits_schema

RIVER = 90_000_101
UI = "https://dagster.example.org"


@pytest.fixture
def populated(library: Library) -> Library:
    """A library in which every table of every report has a row, and everything from outside is hostile."""
    options = {"ai_intros": True, "openrouter_api_key": "key", "ui_url": UI, **library.options}
    library = library.renewed(
        [video(n, vod_name=f"{HOSTILE}{n // 4}", vod_area=HOSTILE) for n in range(1, 12)], **options
    )
    now = library.clock.now()
    for vod_id in (1, 2, 8):
        linked(library, vod_id, RIVER, douban_last_sync_at=now)
    library.set_state(8, douban_id_locked=True, intro_locked=True, intro_ai_source=HOSTILE[:60])
    library.set_cms(8, vod_douban_id=RIVER + 1)
    library.set_state(3, douban_review_status="REVIEW", douban_review_reason=HOSTILE)
    verdict(library, 3, (RIVER, 71.0))
    decision(library, 8, "lock_id", note=HOSTILE, reviewer=HOSTILE[:60])
    decision(library, 4, "set_id", douban_id=RIVER, note=HOSTILE, state="pending", pending_key="a")
    decision(library, 4, "choose", note=HOSTILE, state="refused", state_reason=HOSTILE)
    change(library, 5, "sync", reason=HOSTILE, operator=HOSTILE[:60], new_values={"vod_pic": HOSTILE})
    change(library, 5, "sync", state="conflict", state_reason=HOSTILE)
    change(library, 5, "link", state="refused", state_reason=f"豆瓣 ID 已锁定{HOSTILE}")
    task(library, 6, "AI_INTRO", "intro", "PENDING", attempts=1, last_error=HOSTILE)
    task(library, 7, "SYNC_DOUBAN", "sync", "PENDING", last_error=HOSTILE)
    task(library, 10, "AI_INTRO", "intro", "SKIP", finished_at=now, last_error=f"{NO_SOURCE}{HOSTILE}")
    task(library, 9, "SYNC_DOUBAN", "sync", "RUNNING", lease_owner="run@elsewhere:1", lease_until=now)
    library.set_state(6, intro_ai_fail_count=1, intro_ai_last_fail_at=now, intro_ai_last_fail_reason=HOSTILE)
    proof = {"text": HOSTILE, "sentence": 0, "basis": "none", "passages": [HOSTILE], "problem": HOSTILE, "cut": True}
    sheet = {"title": "t", "synopsis": f"{HOSTILE}。"}
    intro(library, 6, "written", reading=[proof], reader=HOSTILE[:60], model=HOSTILE[:60], fact_sheet=sheet)
    intro(library, 6, "refused", violations=[{"code": "person", "text": HOSTILE}], cost_usd=0.01)
    return library


@pytest.mark.parametrize("name", ASSETS)
def test_everything_is_reported_escaped_with_links_that_work(name: str, populated: Library) -> None:
    before = populated.all_bytes()
    published = publish_asset(populated.services, name)
    repository = build_defs(settings=populated.settings).get_repository_def()
    tables = {key: value for key, value in published.metadata.items() if isinstance(value, str) and key[-5:] != "_page"}
    assert tables
    assert "—" not in tables.values(), "a table without a row proves nothing"
    for text in (*tables.values(), published.sheet):
        assert not re.search(r'<img (?!class="poster")', text)
    assert not re.search(r"(?<!\\)\]\(javascript", "".join(tables.values()))
    assert "`乙`*丙*[丁](javascript:alert(2))" in published.sheet, "it is shown as what it is"
    paths = {
        *(path for text in tables.values() for path in re.findall(r"\]\((/[^)]*)\)", text)),
        *(html.unescape(path) for path in re.findall(rf'href="{UI}(/[^"]*)"', published.sheet)),
    }
    jobs = [path for path in paths if path.startswith("/locations/")]
    assert jobs
    for path in jobs:
        job, config = launched(path)
        assert fits_schema(repository.get_job(job), config), path
    assert populated.all_bytes() == before


@pytest.mark.parametrize("name", ASSETS)
def test_an_empty_library_is_published_too(name: str, library: Library) -> None:
    published = publish_asset(library.services, name)
    pages = {value for key, value in published.metadata.items() if key.endswith("_page")}
    numbers = [value for value in published.metadata.values() if isinstance(value, int | float)]
    assert numbers
    assert set(numbers) == {0}
    assert set(map(str, published.metadata.values())) == {*map(str, numbers), "—", *pages}
    assert "没有" in published.sheet


@pytest.mark.parametrize("name", ASSETS)
def test_the_pages_are_where_their_metadata_says(name: str, library: Library) -> None:
    folder = library.settings.home.absolute() / "reports"
    metadata = materialize(library.services, name).metadata
    pages = {key: value for key, value in metadata.items() if key.endswith("_page")}
    assert pages == {f"{file.removeprefix('list_')}_page": str(folder / f"{file}.html") for file in FILES[name]}
    assert {(folder / f"{file}.html").stat().st_mode & 0o777 for file in FILES[name]} == {0o644}
    served = library.renewed(**library.options, reports_url="https://site.example.org/reports/")
    served_pages = publish_asset(served.services, name).metadata
    assert [served_pages[key] for key in pages] == [
        f"https://site.example.org/reports/{file}.html" for file in FILES[name]
    ]


def test_pages_of_earlier_versions_lead_to_the_lists(library: Library) -> None:
    folder = library.settings.home / "reports"
    folder.mkdir(parents=True)
    (folder / "missing_douban_ids.html").write_text("stale")
    publish_asset(library.services, "missing_douban_ids")
    publish_asset(library.services, "locked_douban_ids")
    assert 'content="0; url=list_missing.html"' in (folder / "missing_douban_ids.html").read_text("utf-8")
    assert not (folder / "locked_douban_ids.html").exists(), "nobody can have bookmarked what was never there"


@pytest.mark.parametrize("name", ASSETS)
def test_a_sheet_that_cannot_be_written_fails_the_run_once(name: str, library: Library) -> None:
    library.settings.home.mkdir()
    (library.settings.home / "reports").write_text("in the way")
    with pytest.raises(dg.Failure, match="无法写入") as failure:
        publish_asset(library.services, name)
    assert failure.value.allow_retries is False
    assert "DOUBAN_PIPELINE_HOME" in str(failure.value)


def test_who_is_kept_and_how_many_groups_are_listed_is_config(library: Library) -> None:
    names = ["影片1", "影片2", *(name for name in ("蓝鲸与灯塔", "长河落日记事") for _ in range(2))]
    rows = [video(n, vod_name=name, vod_hits=n) for n, name in enumerate(names, start=1)]
    library = library.renewed(rows, **library.options)
    for vod_id in (1, 2):
        linked(library, vod_id, RIVER, douban_id_confidence=90.0 + vod_id)
    assert "匹配得分最高：92.0" in publish_asset(library.services, "duplicate_reports").sheet
    chosen = publish_asset(library.services, "duplicate_reports", keeper="earliest_link", most=1)
    assert "建议保留关联最早的" in chosen.sheet
    assert chosen.metadata["groups_by_title"] == 2
    assert ("同名同年同类（2 组）" in chosen.sheet, "这里是前 1 组" in chosen.sheet) == (True, True)


def test_dagster_shows_the_first_rows_of_a_list_and_the_most_valuable_of_those_without_an_id(library: Library) -> None:
    library = library.renewed(
        [video(n, vod_hits=10**n if n < 6 else 0) for n in range(1, IN_UI + 9)], **library.options
    )
    metadata = publish_asset(library.services, "missing_douban_ids").metadata
    assert metadata["missing_rows"] == metadata["missing"] == IN_UI + 8
    shown = metadata["missing_first"]
    assert shown.endswith(f"前 {IN_UI} 行，共 {IN_UI + 8} 行。")
    assert [f"影片{n} " in shown.splitlines()[2] for n in (5, 4)] == [True, False]


def test_a_wrong_rule_is_refused_before_anything_is_read(library: Library) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError, match="keeper"):
        materialize(library.services, "duplicate_reports", {"keeper": "newest"})


def test_the_launchpad_of_a_list_has_defaults() -> None:
    fields = ASSETS["duplicate_reports"].op.config_schema.config_type.fields
    assert not [field for field in fields.values() if field.is_required]


def test_the_lists_compare_across_shards_and_hang_on_what_was_written() -> None:
    for name, asset in ASSETS.items():
        assert asset.partitions_def is None, name
        assert {key.to_user_string() for key in asset.keys_by_input_name.values()} == {"synced_fields"}, name
        assert [spec.group_name for spec in asset.specs] == ["reports"], name


def test_links_open_in_the_code_location_of_the_run(populated: Library) -> None:
    services = replace(populated.services, location="__repository__@library")
    for name in ASSETS:
        report = publish_asset(services, name)
        text = report.sheet + "".join(value for value in report.metadata.values() if isinstance(value, str))
        assert set(re.findall(r"/locations/([^/]+)/", text)) == {"__repository__@library"}
