"""Configs of launchpads: YAML that Dagster reads, defaults as comments, links of a length that servers accept."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.ui.launchpad_links import MOST_CHARACTERS, Launchpad, launch_link, op_config, row, titled


def default_of(name: str, value: Any) -> str:
    """Return the line in which a default is shown, without the sign that makes it a comment."""
    *_, line = op_config("work", {}, others={name: value}).splitlines()
    return line.strip().removeprefix("# ")


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -3, 170_000, "", [], {}, 0.5, "2026-01-01", "null", "12", "是", "a: b", "'"],
)
@pytest.mark.parametrize("name", ["limit", "on", "No"])
def test_a_default_is_shown_as_yaml_writes_it(name: str, value: Any) -> None:
    line = default_of(name, value)
    assert yaml.safe_load(line) == {name: value}
    assert line == " ".join(yaml.safe_dump({name: value}, allow_unicode=True, width=10_000).split())


@given(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.none() | st.booleans() | st.integers() | st.just(""))
def test_whatever_a_field_is_called_its_default_reads_back(name: str, value: Any) -> None:
    assert yaml.safe_load(default_of(name, value)) == {name: value}


def test_rows_take_a_line_each_and_fields_their_comments() -> None:
    rows = [titled({"vod_id": 7, "why": "a"}, "某片"), row(vod_id=8, why="b")]
    text = op_config("revert", {"changes": rows, "dry_run": True}, {"dry_run": "只试算", "limit": "最多"}, {"limit": 5})
    assert yaml.safe_load(text) == {
        "ops": {
            "revert": {"config": {"changes": [{"vod_id": 7, "why": "a"}, {"vod_id": 8, "why": "b"}], "dry_run": True}}
        }
    }
    assert "- {vod_id: 7, why: a}  # 某片\n" in text
    assert "dry_run: true  # 只试算\n" in text
    assert "# limit: 5  # 最多\n" in text


def test_a_link_that_servers_would_refuse_is_left_out() -> None:
    short, long = Launchpad("job", "ops: {}\n"), Launchpad("job", "# " + "长" * MOST_CHARACTERS)
    assert launch_link("打开", short, "here").startswith("[打开](")
    assert launch_link("打开", long, "here") == ""
