"""The lists as Dagster publishes them: numbers, first rows and files; nothing is written to the CMS."""

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
    HOSTILE,
    OF_ASSETS,
    change,
    decision,
    intro,
    launched,
    linked,
    materialize,
    publish_asset,
    shown_page,
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
def test_everything_is_shown_escaped_with_links_that_work(name: str, populated: Library) -> None:
    before = populated.all_bytes()
    metadata = publish_asset(populated.services, name)
    repository = build_defs(settings=populated.settings).get_repository_def()
    previews = [metadata[f"{each}_first"] for each in OF_ASSETS[name]]
    assert "—" not in previews, "a table without a row proves nothing"
    page = "".join(shown_page(populated.services, each) for each in OF_ASSETS[name])
    assert not re.search(r'<img (?!class="poster")', "".join([*previews, page]))
    assert not re.search(r"(?<!\\)\]\(javascript", "".join(previews))
    assert "`乙`*丙*[丁](javascript:alert(2))" in page, "it is shown as what it is"
    jobs = [html.unescape(path) for path in re.findall(rf'href="{UI}(/locations/[^"]*)"', page)]
    assert jobs
    for path in jobs:
        job, config = launched(path)
        assert fits_schema(repository.get_job(job), config), path
    assert populated.all_bytes() == before


@pytest.mark.parametrize("name", ASSETS)
def test_an_empty_library_is_published_too(name: str, library: Library) -> None:
    metadata = publish_asset(library.services, name)
    numbers = [value for value in metadata.values() if isinstance(value, int | float)]
    assert numbers
    assert set(numbers) == {0}
    assert {metadata[f"{each}_first"] for each in OF_ASSETS[name]} == {"—"}


@pytest.mark.parametrize("name", ASSETS)
def test_metadata_lead_to_the_served_page_and_to_the_file(name: str, library: Library) -> None:
    folder = library.settings.home.absolute() / "reports"
    metadata = materialize(library.services, name)
    for each in OF_ASSETS[name]:
        assert (metadata[f"{each}_page"], metadata[f"{each}_csv"]) == (
            f"/lists/{each}",
            str(folder / f"list_{each}.csv"),
        )
        assert (folder / f"list_{each}.csv").stat().st_mode & 0o777 == 0o644
    assert not list(folder.glob("*.html"))
    served = library.renewed(**library.options, public_url="https://service.example.org/")
    addresses = publish_asset(served.services, name)
    for each in OF_ASSETS[name]:
        assert addresses[f"{each}_page"] == f"https://service.example.org/lists/{each}"
        assert addresses[f"{each}_csv"] == f"https://service.example.org/list_{each}.csv"


@pytest.mark.parametrize("name", ASSETS)
def test_a_file_that_cannot_be_written_fails_the_run_once(name: str, library: Library) -> None:
    library.settings.home.mkdir()
    (library.settings.home / "reports").write_text("in the way")
    with pytest.raises(dg.Failure, match="无法写入") as failure:
        publish_asset(library.services, name)
    assert failure.value.allow_retries is False
    assert "DOUBAN_PIPELINE_HOME" in str(failure.value)


def test_dagster_shows_the_first_rows_of_a_list(library: Library) -> None:
    library = library.renewed([video(n) for n in range(1, IN_UI + 9)], **library.options)
    metadata = publish_asset(library.services, "missing_douban_ids")
    assert metadata["missing_rows"] == metadata["missing"] == IN_UI + 8
    assert len(re.findall(r"影片\d+ *\|", metadata["missing_first"])) == IN_UI


def test_the_lists_compare_across_shards_and_hang_on_what_was_written() -> None:
    for name, asset in ASSETS.items():
        assert asset.partitions_def is None, name
        assert {key.to_user_string() for key in asset.keys_by_input_name.values()} == {"synced_fields"}, name
        assert [spec.group_name for spec in asset.specs] == ["reports"], name


def test_links_open_in_the_code_location_of_the_run(populated: Library) -> None:
    services = replace(populated.services, location="__repository__@library")
    for names in OF_ASSETS.values():
        text = "".join(shown_page(services, each) for each in names)
        assert set(re.findall(r"/locations/([^/]+)/", text)) == {"__repository__@library"}
