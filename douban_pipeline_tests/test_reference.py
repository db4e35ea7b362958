"""Whether the pages that `make reference` writes from the code are those of the code as it is."""

from __future__ import annotations

import pytest

from douban_pipeline.core.language import Language
from douban_pipeline_tests.harness import troubleshooting
from douban_pipeline_tests.harness.findings import alert_titles, findings
from douban_pipeline_tests.harness.reference import (
    FIRST,
    PROJECT,
    REFERENCE_PAGE,
    SECTIONS,
    documented_settings,
    reference_page,
    settings_page,
)

ROW = "| `{name}` | {default} | {meaning} |"


def test_the_page_of_jobs_is_current():
    assert (PROJECT / REFERENCE_PAGE).read_text(encoding="utf-8") == reference_page(), "run `make reference`"


@pytest.mark.parametrize(("language", "path"), troubleshooting.PAGES.items())
def test_the_page_of_troubleshooting_is_current(language: Language, path: str):
    page = (PROJECT / path).read_text(encoding="utf-8")
    assert page == troubleshooting.page(language), "run `make reference`"


def test_every_check_and_every_alert_has_its_reason_and_none_is_left_over():
    named = {finding.name for finding in findings("en")} | {"database", "settings", "libraries"}
    assert named == troubleshooting.WHY.keys()
    assert set(alert_titles()) == troubleshooting.ALERTS.keys()


def test_what_a_check_says_is_read_from_the_code_in_both_languages():
    english, chinese = findings("en"), findings("zh")
    assert [(each.system, each.name) for each in english] == [(each.system, each.name) for each in chinese]
    by_name = {each.name: each for each in english if not each.system}
    assert by_name["grants"].message == "this account lacks … and … more"
    assert by_name["pools"].remedy == "run `douban-pipeline setup`"
    assert {each.remedy for each in chinese if each.name == "clock"} == {"用 NTP 保持各机器时钟一致"}


NAMES = [name for settings in documented_settings().values() for name, _ in settings]


def page_of(rows: list[tuple[str, str, str]]) -> str:
    """Return a page with all sections, and the rows in the first one."""
    given = [ROW.format(name=name, default=default, meaning=meaning) for name, default, meaning in rows]
    lines = ["# Settings", ""]
    for heading in SECTIONS.values():
        lines += [f"## {heading}", "", "| variable | default | meaning |", "|--|--|--|", *given, ""]
        given = []
    return "\n".join([*lines, "The end."]) + "\n"


def test_twenty_settings_come_first_and_each_other_one_where_it_is_read():
    written = settings_page(page_of([("DOUBAN_PIPELINE_FORGOTTEN", "1", "gone")]))
    assert "FORGOTTEN" not in written
    first, shared = written.split("## Shared")
    assert first.count("| `DOUBAN_PIPELINE_") == len(FIRST) == 20
    assert "`DOUBAN_PIPELINE_WERSS_URL`" in shared.split("## Douban")[0], "two systems read it"
    assert "`DOUBAN_PIPELINE_FEEDS_PROFILE`" in shared.split("## Feeds")[1].split("## Digest")[0]
    assert written.endswith("The end.\n")
    assert settings_page(written) == written
    assert len(NAMES) == len(set(NAMES))
