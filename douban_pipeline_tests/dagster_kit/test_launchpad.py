"""Jobs for people: what the launchpad opens with, the manual, and what a run refuses, all from one config class."""

from __future__ import annotations

import enum
from typing import Any
from urllib.parse import unquote

import dagster as dg
import pytest
import yaml
from pydantic import Field

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.dagster_kit.launchpad import PERSON_TAGS, example_yaml, person_job


class Colour(enum.StrEnum):
    """Members are typed by name in a launchpad, whatever their value is."""

    RED = "red"
    BLUE = "blue"


class Line(dg.Config):
    """A line."""

    number: int = Field(description="号码")
    colour: Colour = Field(Colour.RED, description="颜色")


class Painting(dg.Config):
    """A config with everything that configs have."""

    reviewer: str = Field("", description="Your name.")
    dry_run: bool = Field(True, description="true only shows.")
    lines: list[Line] = Field(description="行")
    width: float | None = Field(None, description="Width; left out: as it is.")
    colours: list[Colour] = Field(default_factory=list, description="Colours.")
    text: str = Field("", description="Text.")


def paint(context: dg.OpExecutionContext, config: Painting, brush: dg.ResourceParam[str]) -> None:
    """Paint the lines."""
    if not config.reviewer:
        raise ProblemsError(["reviewer: 请填写", "a *b*"])
    context.add_output_metadata({"lines": len(config.lines), "brush": brush})


EXAMPLE: dict[str, Any] = {
    "reviewer": "小王",
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
        ("dry_run", True),
        ("lines", [{"number": 0, "colour": "RED"}]),
        ("width", 3.5),
        ("colours", []),
        ("text", ""),
    ]
    assert dg.validate_run_config(job, job.run_config)
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
    assert text.startswith("画\n")
    assert "- `lines`：行\n  - `number`：号码\n  - `colour`：颜色\n- `width`：" in text
    assert "两行：\n\n```yaml\nops:" in text
    [link, listed] = [line for line in text.splitlines() if "/playground/setup?config=" in line]
    assert link.startswith("[打开填好的启动页](/locations/__repository__@studio/jobs/paint_lines/")
    assert listed.startswith("- [两行](/locations/")
    config = yaml.safe_load(unquote(link.partition("config=")[2].rstrip(")")))["ops"]["paint"]["config"]
    assert list(config) == ["reviewer", "dry_run", "lines", "text"]
    assert (config["reviewer"], config["dry_run"]) == ("", True)


def test_a_run_says_all_that_is_wrong_at_once() -> None:
    done = run({"reviewer": "小王", "lines": [{"number": 1}]})
    assert done.success
    [metadata] = [event.event_specific_data.metadata for event in done.all_events if event.is_successful_output]
    assert {name: value.value for name, value in metadata.items()} == {"lines": 1, "brush": "oil"}
    wrong = failure(run({"reviewer": "", "lines": []}))
    assert wrong.error is not None
    assert wrong.error.message.endswith("什么也没画：\n- reviewer: 请填写\n- a *b*\n")
    assert wrong.user_failure_data is not None
    assert "a \\*b\\*" in str(wrong.user_failure_data.metadata["problems"].value)


def test_no_run_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_DATABASE_PASSWORD", "geheim")
    result = run({"reviewer": {"env": "SITE_DATABASE_PASSWORD"}, "lines": []})
    assert not result.success
    assert "配置中不得引用环境变量：SITE_DATABASE_PASSWORD" in str(failure(result).error)
    assert "geheim" not in str(result.all_events)
