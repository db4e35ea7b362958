"""What each release asks of an installation: settings, jobs and their configs, pools, files of `deploy`.

A file a release stands in ``releases``; ``make reference`` writes this release's from the code, those of before stay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from packaging.version import Version

from douban_pipeline import __version__


@dataclass(frozen=True, slots=True)
class Release:
    """A release.

    Attributes:
        name: Its version.
        settings: Default and limits of each setting, by its variable.
        jobs: Fields of each job's config with their defaults as JSON, None where a value is required; by system/job.
        pools: Limits of Dagster's pools.
        files: Hashes of the files in `deploy`, without its texts.
    """

    name: str
    settings: Mapping[str, tuple[str, str]]
    jobs: Mapping[str, Mapping[str, str | None]]
    pools: Mapping[str, int]
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobChange:
    """How the config of a job changed.

    Attributes:
        job: System and job.
        steps: Steps with another name (old, new).
        gone: Fields that went, as step.field with the step's present name.
        new: Fields that came.
        defaults: Fields with another default (old, new).
        removed: Whether the job itself is gone.
    """

    job: str
    steps: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str, str], ...] = ()
    removed: bool = False


def release_names() -> list[str]:
    """Return the versions of all releases, oldest first."""
    names = (each.name for each in files("douban_pipeline.ops").joinpath("releases").iterdir())
    return sorted((name.removesuffix(".json") for name in names if name.endswith(".json")), key=Version)


@cache
def release_named(name: str) -> Release:
    """Return a release by its version, as `release_names` has it."""
    content = json.loads(files("douban_pipeline.ops").joinpath("releases", f"{name}.json").read_text(encoding="utf-8"))
    settings = {variable: (default, limits) for variable, (default, limits) in content.pop("settings").items()}
    return Release(name, settings=settings, **content)


def release_before(name: str) -> Release:
    """Return the newest release that is not newer than ``name``; the oldest for one from before all."""
    return release_named(
        next((each for each in reversed(release_names()) if Version(each) <= Version(name)), release_names()[0])
    )


def this_release() -> Release:
    """Return the release of this code."""
    return release_named(__version__)


def changed_jobs(old: Release, new: Release, systems: Iterable[str]) -> Iterator[JobChange]:
    """Yield the jobs of systems whose configs changed between two releases, and those that are gone."""
    wanted = tuple(f"{system}/" for system in systems)
    for job, before in old.jobs.items():
        if not job.startswith(wanted):
            continue
        if job not in new.jobs:
            yield JobChange(job, removed=True)
            continue
        after, steps = new.jobs[job], _renamed_steps(before, new.jobs[job])
        before = {f"{steps.get(step, step)}.{name}": value for (step, name), value in _by_step(before).items()}
        change = JobChange(
            job,
            steps=tuple(steps.items()),
            gone=tuple(sorted(before.keys() - after.keys())),
            new=tuple(sorted(after.keys() - before.keys())),
            defaults=tuple(
                (field, before[field] or "", after[field] or "")
                for field in sorted(before.keys() & after.keys())
                if before[field] != after[field]
            ),
        )
        if change.steps or change.gone or change.new or change.defaults:
            yield change


def _by_step(fields: Mapping[str, str | None]) -> dict[tuple[str, str], str | None]:
    return {(step, name): value for field, value in fields.items() for step, _, name in [field.partition(".")]}


def _renamed_steps(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> dict[str, str]:
    """Return the steps with another name now: the only one that went, if only one came and they share fields."""
    old, new = ({step: set[str]() for step, _ in _by_step(fields)} for fields in (before, after))
    for names, fields in ((old, before), (new, after)):
        for step, name in _by_step(fields):
            names[step].add(name)
    gone, come = old.keys() - new.keys(), new.keys() - old.keys()
    if len(gone) == len(come) == 1:
        [step], [name] = gone, come
        return {step: name} if old[step] & new[name] else {}
    return {}


def changed_files(old: Release, new: Release) -> list[str]:
    """Return the files of `deploy` that a release changed or added since another."""
    return [name for name, digest in new.files.items() if old.files.get(name) != digest]


def digest(path: Path) -> str:
    """Return the hash of a file, as `Release.files` has it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
