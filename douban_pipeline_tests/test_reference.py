"""Whether the pages that `make reference` writes from the code are those of the code as it is."""

from __future__ import annotations

import pytest

from douban_pipeline.core.ui.language import Language
from douban_pipeline_tests.harness.reference import (
    PROJECT,
    REFERENCE_PAGES,
    documented_settings,
    reference_page,
    settings_page,
)

ROW = "| `{name}` | {default} | {meaning} |"


@pytest.mark.parametrize(("language", "path"), REFERENCE_PAGES.items())
def test_the_page_of_jobs_is_current(language: Language, path: str):
    page = (PROJECT / path).read_text(encoding="utf-8")
    assert page == reference_page(language), "run `make reference`"


def page_of(rows: list[tuple[str, str, str]]) -> str:
    lines = [ROW.format(name=name, default=default, meaning=meaning) for name, default, meaning in rows]
    half = len(lines) // 2
    return "\n".join(["# Settings", "", *lines[:half], "", "## More", "", *lines[half:], "", "The end."]) + "\n"


def test_settings_keep_their_section_and_a_new_one_follows_its_neighbour():
    rows = [(name, "outdated", "outdated") for name, _ in documented_settings()]
    third, fourth = rows[2], rows[3]
    page = page_of([("DOUBAN_PIPELINE_FORGOTTEN", "1", "gone"), *(row for row in rows if row is not third)])
    written = settings_page(page, "en")
    assert "FORGOTTEN" not in written
    assert "outdated" not in written
    assert written.index(f"`{third[0]}`") < written.index(f"`{fourth[0]}`") < written.index("## More")
    assert written.endswith("The end.\n")
    assert settings_page(written, "en") == written


def test_a_setting_without_a_chinese_meaning_is_named():
    [first, *rows] = [(name, "1", "含义") for name, _ in documented_settings()]
    with pytest.raises(KeyError, match=first[0]):
        settings_page(page_of(rows), "zh")
