"""The steps of ``init``, in order. Each may be repeated: what is there is shown, and only what is said anew changes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import typer

from douban_pipeline.core.database_urls import parse_url
from douban_pipeline.core.environment import SYSTEMS
from douban_pipeline.core.errors import OperatingError
from douban_pipeline.core.extras import missing_library
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import SiteQuestion
from douban_pipeline.core.platform import Platform
from douban_pipeline.core.settings_base import split_list
from douban_pipeline.core.system import System, chosen, every_system
from douban_pipeline.ops import installation, installation_check
from douban_pipeline.ops.init.database import choose_database
from douban_pipeline.ops.init.dialogue import Dialogue, checked, required
from douban_pipeline.ops.init.env_file import read_env, write_env
from douban_pipeline.ops.init.new_installation import DRY_RUN, HOME, SYSTEMS_SET, InitOptions, Installation
from douban_pipeline.ops.init.site_files import SitePaths, write_site_files
from douban_pipeline.ops.workspace import project_folder, server_variables

_DAGSTER_HOME = "DAGSTER_HOME"
_STORAGE = {
    "USERNAME": ("username", ""),
    "PASSWORD": ("password", ""),
    "HOST": ("host", "127.0.0.1"),
    "PORT": ("port", 5432),
    "DB": ("database", "dagster"),
}
"""The variables that `deploy/dagster.yaml` names, after ``DAGSTER_PG_``: the part of the URL, and its default."""


def init(options: InitOptions) -> None:
    """Lead from a database's address to the page of the first proposals.

    Raises:
        OperatingError: A step cannot be done; the message says why.
        typer.Exit: Ctrl-C (130), or a step failed whose reasons were printed (2).
    """
    dialogue = Dialogue(options.ask, steps=7)
    try:
        _init(options, dialogue)
    except (KeyboardInterrupt, typer.Abort):
        dialogue.say("")
        dialogue.say(
            terminal_text("stopped in step {step}: what was done is kept, and `init` goes on from there").format(
                step=dialogue.step
            )
        )
        raise typer.Exit(130) from None


def _init(options: InitOptions, dialogue: Dialogue) -> None:
    dialogue.begin(terminal_text("The installation"))
    site = _installation(options, dialogue)
    dialogue.begin(terminal_text("The database"))
    choose_database(site)
    dialogue.begin(terminal_text("The site"))
    with ExitStack() as stack:
        for system, services in _opened(site, stack):
            _ask(site, list(system.operations().questions(services)))
    dialogue.begin(terminal_text("The files"))
    _write(site)
    dialogue.begin(terminal_text("Our tables"))
    installation.set_up(site.names, next_steps=False)
    dialogue.begin(terminal_text("Checks, with one request to each source"))
    if not installation_check.check(site.names, dagster=False, sources=True, as_json=False):
        dialogue.say(terminal_text("Correct what failed, and run `douban-pipeline init` again: it goes on from here."))
        raise typer.Exit(2)
    dialogue.begin(terminal_text("A first look, without writing to the CMS"))
    _first_look(site)
    _print_next(site)


# --- 1: where and what ------------------------------------------------------------------------------------------------


def _installation(options: InitOptions, dialogue: Dialogue) -> Installation:
    """Return the installation, with the environment that it has and what was said of it."""
    known = read_env(SitePaths(options.folder.absolute()).env) if options.folder else {}
    given_home = str(options.home or known.get(HOME) or os.environ.get(HOME) or _default_home())
    home = Path(
        given_home
        if options.home
        else dialogue.answer(terminal_text("Folder for files: reports, backups"), given_home, _outside, option="home")
    )
    home = Path(_outside(str(home)))
    paths = SitePaths((options.folder or home / "site").absolute())
    _outside(str(paths.folder))
    known = known or read_env(paths.env)
    if known:
        dialogue.say(terminal_text("{path}: its values stay where nothing else is said").format(path=paths.env))
    site = Installation(options, dialogue, paths, {**known, HOME: str(home), _DAGSTER_HOME: str(paths.dagster_home)})
    site.values.setdefault(DRY_RUN, "true")
    before = known.get(SYSTEMS_SET) or os.environ.get(SYSTEMS_SET) or SYSTEMS[0]
    if options.systems is None:
        prompt = terminal_text("Systems, of {systems}").format(systems=", ".join(SYSTEMS))
        names = dialogue.answer(prompt, before, _system_names, option="systems")
    else:
        names = checked(options.systems, _system_names, "systems")
    site.systems = chosen(split_list(names))
    site.values[SYSTEMS_SET] = names
    storage = _storage_variables(options.storage_url) if options.storage_url else {}
    site.values.update({**server_variables(site.names), **{k: v for k, v in known.items() if k.startswith("DAGSTER_")}})
    site.values.update({_DAGSTER_HOME: str(paths.dagster_home), **storage, **options.settings})
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return site


def _default_home() -> Path:
    return Path("/var/lib/douban_pipeline") if os.geteuid() == 0 else Path.home() / "douban_pipeline"


def _outside(value: str) -> str:
    """Return a folder's absolute path; files of an installation in a checkout would be lost with it, or committed."""
    path, project = Path(required(value)).expanduser().absolute(), project_folder()
    if (project / "pyproject.toml").is_file() and path.is_relative_to(project):
        raise OperatingError(terminal_text("{path} is in the checkout: name a folder outside it").format(path=path))
    return str(path)


def _system_names(answer: str) -> str:
    names = list(dict.fromkeys(split_list(required(answer))))
    known = {system.name: system for system in every_system()}
    unknown = [name for name in names if name not in known]
    if unknown:
        problem = terminal_text("there is no system {name!r}; systems: {known}")
        raise ValueError(problem.format(name=unknown[0], known=", ".join(known)))
    for name in names:
        if library := known[name].absent_library:
            raise ValueError(f"{name}: {missing_library(library, name)}")
    return ",".join(names)


def _storage_variables(url: str) -> dict[str, str]:
    """Return the variables of Dagster's storage for the URL of its PostgreSQL."""
    parsed = parse_url(url, setting="--storage-url", backends=("postgresql",))
    given = {name: getattr(parsed, part) for name, (part, _) in _STORAGE.items()}
    return {
        f"DAGSTER_PG_{name}": str(default if given[name] is None else given[name])
        for name, (_, default) in _STORAGE.items()
    }


# --- what follows the database ---------------------------------------------------------------------------------------


def _opened(site: Installation, stack: ExitStack) -> Iterator[tuple[System, Platform]]:
    for system in site.systems:
        yield system, stack.enter_context(system.opened())


def _ask(site: Installation, questions: Sequence[SiteQuestion]) -> None:
    """Ask the questions of a system; what was answered before is the default."""
    for question in questions:
        for line in question.about:
            site.dialogue.say(line)
        answered = question.variable in site.values
        if question.option in site.options.answers:
            value = checked(site.options.answers[question.option], question.setting, f"answer {question.option}")
        else:
            default = question.given if answered else question.proposed
            value = site.dialogue.answer(
                question.prompt,
                default,
                question.setting,
                option=f"answer {question.option}=…",
                unasked=question.given if answered else question.unasked,
            )
        site.values[question.variable] = value
        site.dialogue.say(f"  {question.variable}={value}")
    site.use()


def _write(site: Installation) -> None:
    """Write what changed of the installation's files."""
    on_postgres = "DAGSTER_PG_HOST" in site.values
    changed = write_site_files(site.paths, site.systems, Path(site.values[HOME]), on_postgres=on_postgres)
    variables = write_env(site.paths.env, site.values)
    for path in changed:
        site.dialogue.say(terminal_text("written    {path}").format(path=path))
    if variables:
        names = ", ".join(variables)
        site.dialogue.say(terminal_text("written    {path}: {names}").format(path=site.paths.env, names=names))
    if not changed and not variables:
        site.dialogue.say(terminal_text("nothing changed"))


def _first_look(site: Installation) -> None:
    """Let each system that can show a little of its work, and print where it is shown."""
    for system in site.systems:
        settings = system.settings().load(**({"dry_run": True} if system.is_base else {}))
        with system.opened(settings) as services:
            page = system.operations().first_look(services, site.options.videos, site.dialogue.say)
        if page is not None:
            site.dialogue.say(
                terminal_text("`douban-pipeline serve` shows why, and what would be written: /{page}").format(page=page)
            )
        elif system.is_base:
            site.dialogue.say(terminal_text("no video waits to be judged"))


def _print_next(site: Installation) -> None:
    paths = site.paths
    lines = [
        terminal_text("Next: read that page. Nothing is written to the CMS until {variable}=false in {env}.").format(
            variable=DRY_RUN, env=paths.env
        ),
        terminal_text("For commands in this environment: {command}").format(command=f"set -a; . {paths.env}; set +a"),
        terminal_text("To start it with the machine:"),
        f"  sudo cp -r {paths.units}/. /etc/systemd/system/ && sudo systemctl daemon-reload",
        "  sudo systemctl enable --now douban-pipeline.target",
    ]
    if os.geteuid() == 0:
        home = Path(site.values[HOME])
        beside = "" if paths.folder.is_relative_to(home) else f" {paths.folder}"
        owned = f"chown -R douban:douban {home}{beside}"
        lines.insert(2, terminal_text("The units run as the user douban: {command}").format(command=owned))
    if "DAGSTER_PG_HOST" not in site.values:
        lines.append(terminal_text("For lasting use give Dagster a PostgreSQL: `init --storage-url postgresql://…`"))
    for line in lines:
        site.dialogue.say(line)
