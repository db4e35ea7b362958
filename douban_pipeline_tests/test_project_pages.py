"""The pages, the READMEs first: in step in both languages, and what they name is there."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

import pytest
import typer.main
from dagster_dg_cli.cli.launch import launch_command

from douban_pipeline.__main__ import app
from douban_pipeline.comments.definitions import build_defs as build_comments
from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.demo.sample import load_videos
from douban_pipeline.digest.definitions import build_defs as build_digest
from douban_pipeline.digest.settings import DigestSettings
from douban_pipeline.douban.definitions import build_defs
from douban_pipeline.douban.setting_values import DEFAULT_FIELD_POLICIES
from douban_pipeline.douban.settings import PREFIX
from douban_pipeline.douban.store.tables import own_tables
from douban_pipeline.feeds.definitions import build_defs as build_feeds
from douban_pipeline.feeds.settings import FeedsSettings
from douban_pipeline.tmdb.definitions import build_defs as build_tmdb
from douban_pipeline.tmdb.settings import TmdbSettings
from douban_pipeline_tests.conftest import SERVERS
from douban_pipeline_tests.documents import code_in, fenced, fences, outline, rows_of, rows_of_any, targets, text_of
from douban_pipeline_tests.harness import screenshots
from douban_pipeline_tests.harness.fixtures.library import GivenSettings
from douban_pipeline_tests.harness.reference import PROJECT, SETTINGS_PAGE, documented_settings, settings_page

VARIABLE = f"(?:{PREFIX}|(?=[A-Z]+_API_KEY))[A-Z_]+"
"""How the variables of settings look."""
READMES = ("README.md", "README.zh-CN.md")
DOCS = (
    "try",
    "owner",
    "operate",
    "upgrade",
    "troubleshooting",
    "feeds",
    "digest",
    "comments",
    "widget",
    "tmdb",
    "review",
    "develop",
    "rules",
)
MANUAL = ["README.md", "SECURITY.md", *(f"docs/{page}.md" for page in DOCS)]
TWINS = [(f"{page}.md", f"{page}.zh-CN.md") for page in ("README", "docs/owner", "docs/review", "docs/troubleshooting")]
"""Pages that exist in English and in Chinese: what owners and reviewers read."""


@pytest.fixture(params=READMES)
def readme(request: pytest.FixtureRequest) -> str:
    return text_of(request.param)


@pytest.fixture
def manual() -> str:
    """The README and the pages of docs."""
    return "\n".join(map(text_of, MANUAL))


@pytest.mark.parametrize("pages", [(".ci/run",), (*MANUAL, "CONTRIBUTING.md"), READMES])
def test_every_make_command_that_is_named_exists(pages: Sequence[str]):
    texts = [text_of(path) if path == ".ci/run" else "\n".join(code_in(text_of(path))) for path in pages]
    named = set(re.findall(r"\bmake ([a-z]+)\b", "\n".join(texts)))
    assert {"install", "demo", "test"} <= named <= targets()


@pytest.mark.parametrize(
    "path", sorted({*MANUAL, *itertools.chain(*TWINS), "CONTRIBUTING.md", "deploy/README.md", "deploy/README.zh-CN.md"})
)
def test_links_lead_to_what_is_there(path: str):
    text = text_of(path)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)", text):
        page = (PROJECT / path).parent / target if target else PROJECT / path
        assert page.exists(), f"{path} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor[1:] in anchors, f"{path} links to {target}{anchor}"


def test_every_command_of_ours_that_is_named_exists(manual: str):
    commands = set(typer.main.get_command(app).commands)
    named = set(re.findall(r"douban-pipeline ([a-z]+(?:-[a-z]+)*)", "\n".join(code_in(manual))))
    assert {"setup", "settings"} <= named <= commands


@pytest.mark.parametrize("path", [*MANUAL, "deploy/README.md", "deploy/README.zh-CN.md"])
def test_launches_are_written_with_options_that_dagster_has(path: str):
    options = {option for parameter in launch_command.params for option in parameter.opts}
    commands = re.sub(r"\\\n", "", text_of(path)).splitlines()
    for words in (shlex.split(line.strip()) for line in commands if " initialise_library" in line and "config" in line):
        assert any(word.endswith("dg") for word in words), words
        given = words[words.index("launch") :]
        assert {word for word in given if word.startswith("-")} <= options, words


def test_pictures_are_small_and_all_shown(readme: str):
    shown = set(re.findall(r"\((?:docs/)?images/([a-z]+\.jpg)\)", readme + text_of("docs/widget.md")))
    pictures = {path.name: path.stat().st_size for path in (PROJECT / "docs" / "images").iterdir()}
    taken = (*screenshots.SERVED, *screenshots.OF_TESTS)
    assert shown == pictures.keys() == {f"{name}.jpg" for name in taken}
    assert max(pictures.values()) <= screenshots.MOST_BYTES


@pytest.mark.parametrize("page", TWINS, ids=lambda page: page[0])
def test_both_languages_have_the_same_sections_and_blocks(page: tuple[str, str]):
    english, chinese = (text_of(path) for path in page)
    assert outline(english) == outline(chinese)
    assert [language for language, _ in fences(english)] == [language for language, _ in fences(chinese)]
    for language in ("sql", "yaml", "sh"):
        commands = [
            [
                shlex.split(line, comments=language == "sh")
                for body in fenced(text, language)
                for line in body.split("\n")
            ]
            for text in (english, chinese)
        ]
        assert commands[0] == commands[1]
    numbers = [re.findall(r"\d+", body) for text in (english, chinese) for body in fenced(text, "text")[:1]]
    assert numbers[: len(numbers) // 2] == numbers[len(numbers) // 2 :]


def test_the_settings_tables_are_those_of_the_code():
    """`make reference` writes them."""
    page = text_of(SETTINGS_PAGE)
    assert page == settings_page(page)
    documented = [row[0].strip("`") for row in rows_of(page, VARIABLE)]
    assert documented == [name for settings in documented_settings().values() for name, _ in settings]


def test_the_policies_table_is_the_defaults(manual: str):
    policies: dict[str, str] = {}
    for row in rows_of(manual, "vod_[a-z_]+"):
        policies |= {column.strip(" `"): row[1].strip("`") for column in row[0].split(",")}
    policies.pop("vod_douban_id")
    assert policies == DEFAULT_FIELD_POLICIES


def test_the_tables_are_all_there(manual: str):
    named = {row[0].strip("`") for row in rows_of(manual, "mac_douban_[a-z_]+")}
    assert named == {table.name for table in own_tables("mac_").metadata.sorted_tables}


def test_the_servers_table_is_what_the_tests_use(manual: str):
    rows = rows_of_any(manual, "DOUBAN_TEST_[A-Z]+_URL")
    assert rows == list(SERVERS.values())


def test_jobs_assets_and_sensors_are_called_as_they_are(manual: str):
    repository = build_defs(settings=GivenSettings()).get_repository_def()
    names = {key.to_user_string() for key in repository.assets_defs_by_key} | set(repository.job_names)
    names |= {sensor.name for sensor in repository.sensor_defs}
    for others in (
        build_feeds(settings=FeedsSettings(_env_file=None)),
        build_digest(settings=DigestSettings(_env_file=None)),
        build_tmdb(settings=TmdbSettings(_env_file=None)),
        build_comments(settings=CommentsSettings(_env_file=None)),
    ):
        location = others.get_repository_def()
        names |= {key.to_user_string() for key in location.assets_defs_by_key} | set(location.job_names)
        names |= {sensor.name for sensor in location.sensor_defs}
    named = {code for code in code_in(manual) if code in names}
    assert named >= {
        *("due_videos", "search_candidates", "scored_matches", "synced_fields", "review_queue"),
        *("douban_chain", "record_decisions", "revert_changes", "due_videos_sensor"),
    }
    looks_like_one = re.compile(
        r"[a-z]+_(library|sensor|decisions|changes|queue|chain|matches|candidates|videos|fields)"
    )
    assert {code for code in code_in(manual) if looks_like_one.fullmatch(code)} <= names
    executed = {line.rsplit(" ", 1)[-1] for line in code_in(manual) if line.startswith(".venv/bin/dg launch")}
    assert executed == {"initialise_library"} <= names


def test_the_readme_is_read_in_five_minutes(readme: str):
    assert len(readme.splitlines()) <= 120


def test_no_page_names_a_command_that_dagster_has_superseded():
    superseded = re.compile(r"dagster (dev|job execute|asset materialize|definitions validate|project)\b")
    pages = [*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md"), *PROJECT.glob("deploy/**/*.md")]
    pages.remove(PROJECT / "CHANGELOG.md")  # tells what it was called before
    assert len(pages) > 20
    assert {page.name: found for page in pages if (found := superseded.findall(page.read_text(encoding="utf-8")))} == {}


def test_the_sample_is_as_large_as_it_is_said_to_be(readme: str):
    assert str(len(load_videos())) in readme
