"""Jobs for people: what the launchpad opens with, the manual, and what a run refuses, all from one config class."""

from __future__ import annotations

import enum
from typing import Annotated, Any
from urllib.parse import unquote

import dagster as dg
import pytest
import yaml
from pydantic import Field

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.dagster_kit.launchpad import (
    PERSON_TAGS,
    AtLeast,
    Filled,
    PersonName,
    RefusedConfigError,
    asset_job_manual,
    example_yaml,
    person_job,
)


class Colour(enum.StrEnum):
    """Members are typed by name in a launchpad, whatever their value is."""

    RED = "red"
    BLUE = "blue"


class Line(dg.Config):
    """A line."""

    number: Annotated[int, AtLeast(1, "号码印在纸上")] = Field(description="号码")
    colour: Colour = Field(Colour.RED, description="颜色")


class Painting(dg.Config):
    """A config with everything that configs have."""

    reviewer: PersonName = Field("", description="Your name.")
    reason: Annotated[str, Filled("请写明原因", if_written=True)] = Field("", description="Why.")
    dry_run: bool = Field(True, description="true only shows.")
    lines: list[Line] = Field(description="行")
    width: float | None = Field(None, ge=0, description="Width; left out: as it is.")
    colours: list[Colour] = Field(default_factory=list, description="Colours.")
    text: str = Field("", description="Text.")


def paint(context: dg.OpExecutionContext, config: Painting, brush: dg.ResourceParam[str]) -> None:
    """Paint the lines."""
    if config.text == "?":
        raise ProblemsError(["text: 请写清楚", "a *b*"])
    context.add_output_metadata({"lines": len(config.lines), "brush": brush})


EXAMPLE: dict[str, Any] = {
    "reviewer": "小王",
    "reason": "好看",
    "dry_run": False,
    "lines": [{"number": 1, "colour": Colour.BLUE}, {"number": 2}],
    "text": "a,b\nc,d\n",
}
MANUAL = "画\n\n{link}\n\n{links}\n\n{fields}\n\n{examples}\n"


def painted(**changed: Any) -> dg.JobDefinition:
    """Return the job."""
    given: dict[str, Any] = {
        "name": "paint_lines",
        "manual": MANUAL,
        "writes": "一张画。",
        "when": "想画的时候。",
        "examples": {"两行": EXAMPLE},
        "nothing_done": "什么也没画",
        "opening": {"lines": [{"number": 0}], "width": 3.5},
        "location": "__repository__@studio",
    }
    return person_job(paint, **(given | changed))


def run(config: dict[str, Any]) -> dg.ExecuteInProcessResult:
    """Run the job's op with a config."""
    return painted().execute_in_process(
        {"ops": {"paint": {"config": config}}, "loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        resources={"brush": "oil"},
        raise_on_error=False,
    )


def failure(result: dg.ExecuteInProcessResult) -> dg.StepFailureData:
    """Return what made the run fail."""
    [event] = [event for event in result.all_events if event.is_step_failure]
    return event.step_failure_data


def test_the_launchpad_opens_with_the_defaults_of_the_class_in_the_order_of_its_fields() -> None:
    job = painted()
    assert (job.name, job.tags) == ("paint_lines", PERSON_TAGS)
    config = job.run_config["ops"]["paint"]["config"]
    assert list(config.items()) == [
        ("reviewer", ""),
        ("reason", ""),
        ("dry_run", True),
        ("lines", [{"number": 0, "colour": "RED"}]),
        ("width", 3.5),
        ("colours", []),
        ("text", ""),
    ]
    assert painted(tags={"pipeline": "other"}).tags == {"pipeline": "other"}


@pytest.mark.parametrize("opening", [{}, {"lines": []}, {"lines": [], "width": 1.0, "text": "another default"}])
def test_nothing_is_left_out_and_no_default_is_given_twice(opening: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Painting: opens with"):
        painted(opening=opening)


def test_an_example_shows_what_it_sets_a_line_for_each_row() -> None:
    block = example_yaml("paint", Painting(**EXAMPLE))
    assert block.splitlines() == [
        "```yaml",
        "ops:",
        "  paint:",
        "    config:",
        "      reviewer: 小王",
        "      reason: 好看",
        "      dry_run: false",
        "      lines:",
        "        - {number: 1, colour: BLUE}",
        "        - {number: 2}",
        "      text: |",
        "        a,b",
        "        c,d",
        "```",
    ]
    [*_, config] = yaml.safe_load("\n".join(block.splitlines()[1:-1]))["ops"]["paint"].values()
    assert Painting(**config).lines[0].colour is Colour.BLUE


def test_the_manual_holds_fields_and_examples_and_links_that_nobody_signed() -> None:
    text = painted().description
    assert text is not None
    assert text.startswith("画\n\n**会写什么** 一张画。\n\n**何时启动** 想画的时候。\n")
    assert "- `lines`：行\n  - `number`：号码\n  - `colour`：颜色\n- `width`：" in text
    assert "两行：\n\n```yaml\nops:" in text
    [link, listed] = [line for line in text.splitlines() if "/playground/setup?config=" in line]
    assert link.startswith("[打开填好的启动页](/locations/__repository__@studio/jobs/paint_lines/")
    assert listed.startswith("- [两行](/locations/")
    config = yaml.safe_load(unquote(link.partition("config=")[2].rstrip(")")))["ops"]["paint"]["config"]
    assert list(config) == ["reviewer", "reason", "dry_run", "lines", "text"]
    assert (config["reviewer"], config["dry_run"]) == ("", True)


def test_a_run_says_all_that_is_wrong_at_once() -> None:
    done = run({"reviewer": "小王", "lines": [{"number": 1}]})
    assert done.success
    [metadata] = [event.event_specific_data.metadata for event in done.all_events if event.is_successful_output]
    assert {name: value.value for name, value in metadata.items()} == {"lines": 1, "brush": "oil"}
    wrong = failure(run({"reviewer": "小王", "lines": [], "text": "?"}))
    assert wrong.error is not None
    assert wrong.error.message.endswith("什么也没画：\n- text: 请写清楚\n- a *b*\n")
    assert wrong.user_failure_data is not None
    assert "a \\*b\\*" in str(wrong.user_failure_data.metadata["problems"].value)


@pytest.mark.parametrize(
    ("config", "sentences"),
    [
        ({"lines": []}, ["reviewer: 不能为空，请填写你的名字"]),
        ({"reviewer": " ", "lines": []}, ["reviewer: 不能为空，请填写你的名字"]),
        (
            {"reviewer": "小王", "lines": [{"number": 1}, {"number": 0}]},
            ["lines 第 2 条 number: 至少为 1，现为 0，号码印在纸上"],
        ),
        ({"reviewer": "小王", "dry_run": False, "lines": []}, ["reason: 不能为空，请写明原因"]),
        (
            {"lines": [{"number": -5}]},
            ["reviewer: 不能为空，请填写你的名字", "lines 第 1 条 number: 至少为 1，现为 -5，号码印在纸上"],
        ),
        (
            {"reviewer": "小王", "lines": [], "width": -1.0},
            ["width: Input should be greater than or equal to 0"],
        ),
    ],
)
def test_an_impossible_config_is_refused_before_a_run_is_created(config: dict[str, Any], sentences: list[str]) -> None:
    message = "\n".join(["什么也没画：", *(f"- {each}" for each in sentences)])
    job, given = painted(), {"ops": {"paint": {"config": config}}}
    with pytest.raises(RefusedConfigError) as planned:
        dg.validate_run_config(job, given)
    assert str(planned.value) == message
    with dg.DagsterInstance.ephemeral() as instance:
        with pytest.raises(RefusedConfigError):
            job.execute_in_process(given, instance=instance, resources={"brush": "oil"})
        assert instance.get_runs_count() == 0


def test_an_untouched_launchpad_with_an_open_field_is_refused() -> None:
    job = painted()
    with pytest.raises(RefusedConfigError, match="number: 至少为 1，现为 0"):
        dg.validate_run_config(job, job.run_config)


def test_an_example_that_would_be_refused_is_a_mistake_of_the_code() -> None:
    with pytest.raises(ValueError, match="an example would be refused"):
        painted(examples={"": {"lines": []}})
    with pytest.raises(ValueError, match="no config to copy"):
        painted(examples={})


def test_examples_links_and_fields_follow_a_manual_that_does_not_place_them() -> None:
    whole = painted(manual="画\n\n多画几张。\n").description
    assert whole is not None
    places = [
        whole.index(each)
        for each in ("多画几张", "**示例**", "```yaml", "[打开填好的启动页](", "**字段**", "- `lines`：行")
    ]
    assert places == sorted(places)
    several = painted(manual="画", examples={"两行": EXAMPLE, "也是": EXAMPLE}).description
    assert several is not None
    assert "\n- [两行](" in several
    assert "\n- [也是](" in several


def test_the_manual_of_an_asset_job_shows_the_config_of_several_ops() -> None:
    text = asset_job_manual("画", writes="画。", when="现在。", ops={"a": Line(number=1), "b": Painting(**EXAMPLE)})
    assert text.startswith("画\n\n**会写什么** 画。\n\n**何时启动** 现在。\n\n```yaml\n")
    shown = yaml.safe_load(text.partition("```yaml\n")[2].removesuffix("```"))
    assert shown["ops"]["a"] == {"config": {"number": 1}}
    assert shown["ops"]["b"]["config"]["lines"][0] == {"number": 1, "colour": "BLUE"}
    assert "```" not in asset_job_manual("画", writes="画。", when="现在。")


def test_no_run_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    result = run({"reviewer": {"env": "SITE_DATABASE_PASSWORD"}, "lines": []})
    assert not result.success
    assert "配置中不得引用环境变量：SITE_DATABASE_PASSWORD" in str(failure(result).error)
    assert "geheim" not in str(result.all_events)
