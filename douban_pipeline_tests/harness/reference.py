"""Writes what is taken from the code: the tables of settings and the pages of jobs.

``make reference`` writes them; a test compares them with the code.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from douban_pipeline.core.settings_base import BASE_PREFIX, SystemSettings
from douban_pipeline.core.system import every_system
from douban_pipeline.serve.settings import ServeSettings
from douban_pipeline_tests.harness import troubleshooting

PROJECT = Path(__file__).resolve().parents[2]
LOCATIONS = {
    "douban": "douban_pipeline.definitions",
    **{name: f"douban_pipeline.locations.{name}" for name in ("feeds", "digest", "tmdb", "comments")},
}
SETTINGS_PAGE, REFERENCE_PAGE = "deploy/SETTINGS.md", "docs/reference.md"
SECTIONS: Mapping[str, str] = {
    "first": "The twenty that matter",
    "shared": "Shared",
    "douban": "Douban",
    "feeds": "Feeds",
    "digest": "Digest",
    "tmdb": "TMDB",
    "comments": "Comments",
    "serve": "The service",
}
"""The sections of the page of settings, in order, with their headings."""
FIRST = (
    *("SYSTEMS", "DATABASE_URL", "TABLE_PREFIX", "SITE_TIMEZONE", "HOME", "LANGUAGE"),
    *("DRY_RUN", "INCLUDED_TYPE_IDS", "EXCLUDED_TYPE_IDS"),
    *("DOUBAN_URL", "DOUBAN_REQUESTS_PER_MINUTE", "SEARCH_PROVIDER", "SEARCH_URL", "SEARCH_REQUESTS_PER_MINUTE"),
    *("AI_INTROS", "LLM_URL", "LLM_BUDGET_USD_PER_DAY"),
    *("UI_URL", "PUBLIC_URL", "ALERT_WEBHOOK_URL"),
)
"""The twenty settings that matter to every site, without `BASE_PREFIX`."""
_RULE = "|--|--|--|"
_ROW = re.compile(r"^\| `([A-Z_]+)` \| .* \| (.*) \|$")
_HEAD = """# Jobs, assets and sensors

[Operating](operate.md) · [Settings](../deploy/SETTINGS.md)

Written from the code by `make reference`. Times are the site's where no zone is named."""
_TABLES = {"jobs": "| job | begins | what it does |", "assets": "| asset | reads | what it is |"}


def documented_settings() -> dict[str, list[tuple[str, Any]]]:
    """Return the settings of all systems by section of the page, each with its variable, where it belongs.

    First come the `FIRST`, then what two or more systems read, then each system's own.
    """
    fields: dict[str, Any] = {}
    readers: dict[str, list[str]] = {}
    classes: dict[str, type[SystemSettings]] = {
        **{system.name: system.settings() for system in every_system()},
        "serve": ServeSettings,
    }
    for system, settings in classes.items():
        for name, field in settings.model_fields.items():
            fields.setdefault(settings.variable(name), field)
            readers.setdefault(settings.variable(name), []).append(system)
    found: dict[str, list[tuple[str, Any]]] = {section: [] for section in SECTIONS}
    found["first"] = [(BASE_PREFIX + name, fields[BASE_PREFIX + name]) for name in FIRST]
    for variable, field in fields.items():
        if variable.removeprefix(BASE_PREFIX) not in FIRST:
            section = readers[variable][0] if len(readers[variable]) == 1 else "shared"
            found[section].append((variable, field))
    return found


def shown(value: Any) -> str:
    """Return a default as people write it in the environment."""
    if hasattr(value, "get_secret_value"):
        return str(value.get_secret_value())
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(f"{item:g}" if isinstance(item, float) else item for item in value)
    if isinstance(value, dict):
        return ",".join(f"{name}={item:g}" if isinstance(item, int | float) else name for name, item in value.items())
    if isinstance(value, frozenset):
        return ",".join(str(item) for item in sorted(value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings_page(page: str) -> str:
    """Return the page of settings with its tables as the code has them.

    Each section of `SECTIONS` has one table.

    Raises:
        ValueError: The page has no section with a table for some settings.
    """
    lines = page.splitlines()
    lines = [line for line in lines if not _ROW.match(line)]
    for section, settings in documented_settings().items():
        rows = []
        for name, field in settings:
            default = shown(field.get_default(call_default_factory=True))
            rows.append(f"| `{name}` | {f'`{default}`' if default else 'empty'} | {field.description} |")
        heading = lines.index(f"## {SECTIONS[section]}")
        place = lines.index(_RULE, heading) + 1
        lines[place:place] = rows
    return "\n".join(lines) + "\n"


# --- what Dagster shows -----------------------------------------------------------------------------------------------


def _first_sentence(text: str | None) -> str:
    plain = " ".join((text or "").split("\n\n")[0].split()).replace("|", "\\|")
    end = re.search(r"[。！？]|[.!?](?= |$)", plain)
    return plain[: end.end()] if end else plain


def described_location(module: str) -> dict[str, Any]:
    """Return the rows of one location."""
    repository = importlib.import_module(module).defs.get_repository_def()
    begins: dict[str, list[str]] = {}
    for schedule in repository.schedule_defs:
        crons = schedule.cron_schedule if isinstance(schedule.cron_schedule, Sequence) else [schedule.cron_schedule]
        crons = [crons] if isinstance(crons, str) else crons
        zone = f" ({schedule.execution_timezone})" if schedule.execution_timezone == "UTC" else ""
        begins.setdefault(schedule.job_name, []).append(f"`{'; '.join(crons)}`{zone}")
    for sensor in repository.sensor_defs:
        for job in sensor.targets:
            begins.setdefault(job.job_name, []).append(f"`{sensor.name}`")
    jobs = sorted((job for job in repository.get_all_jobs() if not job.name.startswith("__")), key=lambda job: job.name)
    graph = repository.asset_graph
    return {
        "jobs": [
            [
                f"`{job.name}`",
                ", ".join(begins.get(job.name, ["by hand"])),
                _first_sentence(job.description),
            ]
            for job in jobs
        ],
        "assets": [
            [
                f"`{key.to_user_string()}`",
                ", ".join(f"`{parent.to_user_string()}`" for parent in sorted(graph.get(key).parent_keys)),
                _first_sentence(graph.get(key).description),
            ]
            for key in sorted(graph.get_all_asset_keys())
        ],
    }


@cache
def described() -> Mapping[str, Any]:
    """Return `described_location` of each location, from a process that speaks English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DOUBAN_PIPELINE_")}
    environment = {**kept, "DOUBAN_PIPELINE_LANGUAGE": "en", "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name if __spec__ else __name__, "--describe"]
    with tempfile.TemporaryDirectory() as folder:  # without the `.env` of the checkout
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def reference_page() -> str:
    """Return the page of jobs and assets."""
    return "\n\n".join([_HEAD, *_sections(described())]) + "\n"


def _sections(locations: Mapping[str, Any]) -> Iterator[str]:
    for name, tables in locations.items():
        yield f"## `{name}`"
        for kind, heading in _TABLES.items():
            yield "\n".join([heading, _RULE, *(f"| {' | '.join(row)} |" for row in tables[kind])])


def pages() -> dict[str, str]:
    """Return every page that is written from the code, by its path in the checkout."""
    settings = settings_page((PROJECT / SETTINGS_PAGE).read_text(encoding="utf-8"))
    problems = {path: troubleshooting.page(wanted) for wanted, path in troubleshooting.PAGES.items()}
    return {SETTINGS_PAGE: settings, REFERENCE_PAGE: reference_page(), **problems}


def main(arguments: Sequence[str]) -> None:
    """Write the pages; with ``--describe`` print the rows of all locations as JSON."""
    if arguments:
        sys.stdout.write(json.dumps({name: described_location(module) for name, module in LOCATIONS.items()}))
        return
    for path, text in pages().items():
        (PROJECT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
