"""Jobs that people launch with a config: one op, whose config class documents the launchpad and the manual."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import dagster as dg
from pydantic import ValidationError

from douban_pipeline.core.errors import ProblemsError
from douban_pipeline.core.language import language, page_text
from douban_pipeline.core.ui.launchpad_links import Launchpad, comment_of, launch_link, op_config, row
from douban_pipeline.core.ui.presentation import escaped
from douban_pipeline.dagster_kit.labels import owners
from douban_pipeline.dagster_kit.runs import run_tags

PERSON_TAGS = {"dagster/priority": "10", "pipeline": "person"}
"""Jobs launched by people are not queued behind automatic ones."""

SIGNATURE = frozenset({"reviewer", "operator", "note", "reason", "dry_run"})
"""Fields that identify the person who launches; in a link to a launchpad they keep their defaults."""


def person_tags(system: str) -> dict[str, str]:
    """Return `PERSON_TAGS` for the jobs of a system that people launch."""
    return {**PERSON_TAGS, **run_tags(system, PERSON_TAGS["pipeline"])}


class LaunchpadConfig(dg.Config):
    """Base of launchpad configs: the launchpad shows the descriptions of their fields."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if language() == "zh":
            # Otherwise Dagster would show the docstring, which is in English.
            cls.__doc__ = None


class RefusedConfigError(dg.DagsterError):
    """A config that no run is begun with: Dagster shows the message, one line per problem, instead of launching."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Mark of a field, in its annotation, that must not be empty.

    Attributes:
        remedy: What to write there, as a Chinese sentence.
        if_written: Whether a dry run may leave it empty.
    """

    remedy: str
    if_written: bool = False

    def problem(self, place: str, value: object, *, dry_run: bool) -> str:
        """Return why a value is refused; empty if it is not."""
        if (self.if_written and dry_run) or (value.strip() if isinstance(value, str) else value):
            return ""
        return page_text("{place}: must not be empty. {remedy}").format(place=place, remedy=self.remedy)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Mark of a number, or of a list of them, in its annotation, that must not be less than ``least``.

    Attributes:
        least: The least allowed value.
        remedy: What to write there, as a Chinese sentence.
    """

    least: int
    remedy: str

    def problem(self, place: str, value: object, *, dry_run: bool) -> str:
        """Return why a value is refused; empty if it is not."""
        del dry_run
        given = value if isinstance(value, list) else [value]
        wrong = next((each for each in given if isinstance(each, int) and each < self.least), None)
        return (
            ""
            if wrong is None
            else page_text("{place}: must be at least {least}, not {wrong}. {remedy}").format(
                place=place, least=self.least, wrong=wrong, remedy=self.remedy
            )
        )


PersonName = Annotated[str, Filled(page_text("Write your name."))]
"""A field for the name of the person who launches."""


def config_problems(config: dg.Config) -> list[str]:
    """Return a sentence for each field of a config whose mark, `Filled` or `AtLeast`, its value contradicts."""
    return list(_problems(config, "", dry_run=getattr(config, "dry_run", False)))


def _problems(config: dg.Config, place: str, *, dry_run: bool) -> Iterator[str]:
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        marks = (mark for mark in field.metadata if isinstance(mark, Filled | AtLeast))
        yield from filter(None, (mark.problem(f"{place}{name}", value, dry_run=dry_run) for mark in marks))
        for number, each in enumerate(value if isinstance(value, list) else (), start=1):
            if isinstance(each, dg.Config):
                yield from _problems(
                    each,
                    page_text("{place}{name}, number {number}, ").format(place=place, name=name, number=number),
                    dry_run=dry_run,
                )


def person_job(
    work: Callable[..., None],
    *,
    name: str,
    manual: str,
    writes: str,
    when: str,
    examples: Mapping[str, Mapping[str, Any]],
    nothing_done: str,
    opening: Mapping[str, Any] | None = None,
    location: str = "",
    tags: Mapping[str, str] = PERSON_TAGS,
) -> dg.JobDefinition:
    """Return a job that runs ``work`` and whose launchpad opens with a complete config.

    The op is named after ``work``, and described by the first line of the manual. A config that contradicts the marks
    of its fields (`config_problems`) is refused before a run is created. A run refuses a config that names environment
    variables, and a `ProblemsError` raised by ``work`` ends it with one line per problem.

    Args:
        work: The op's function of ``context``, ``config`` (annotated with its `dagster.Config` class) and
            resources. The launchpad opens with the defaults of the config class, in the order of its fields.
        name: Name of the job.
        manual: Description of the job in Markdown, in the language of the pages. Examples, links and fields follow it;
            one that places them itself has ``{fields}`` for a list of the config's fields with their descriptions,
            ``{examples}`` for ``examples`` as YAML, ``{link}`` for a link to the launchpad filled with the first of
            them, ``{links}`` for links to all of them.
        writes: What a launch writes, in a sentence or two; it follows the first line of the manual.
        when: When to launch it, in a sentence or two; it follows ``writes``.
        examples: Config fields and their values by purpose; an example without a particular purpose has an empty key.
        nothing_done: Text for a run that was refused because of its config, such as ``未撤销任何变更``.
        opening: Initial values of the fields without a default, or None. No other field may be given.
        location: Repository and code location in the links of the manual, as Dagster's UI addresses them.
        tags: The job's tags.

    Raises:
        pydantic.ValidationError: An example or the initial config does not fit the class.
        ValueError: ``opening`` names a field that has a default, or leaves out one that is required; an example would
            be refused; or there is none.
    """
    config_class: type[dg.Config] = get_type_hints(work)["config"]

    @wraps(work)
    def run(context: dg.OpExecutionContext, **given: Any) -> None:
        refuse_environment(context)
        try:
            work(context, **given)
        except ProblemsError as error:
            raise problems_failure(nothing_done, error.problems) from error

    # Dagster reads the annotations of the op's function, so those of ``work`` are used; its module may write them as
    # strings.
    run.__signature__ = inspect.signature(work, eval_str=True)  # type: ignore[attr-defined]
    run.__annotations__ = inspect.get_annotations(work, eval_str=True)
    op = work.__name__
    config = config_class(**_opening(config_class, opening or {}))
    shown = {what: config_class(**example) for what, example in examples.items()}

    def link(text: str, example: dg.Config) -> str:
        given = _unsigned(example)
        whole = Launchpad(name, op_config(op, given, *_explained(example, given)))
        # Without comments if they would make the link too long.
        return launch_link(text, whole, location) or launch_link(text, Launchpad(name, op_config(op, given)), location)

    opens = page_text("Open the prefilled launchpad")
    texts = {
        "{fields}": lambda: _field_list(config_class),
        "{examples}": lambda: "\n\n".join(_titled(what, example_yaml(op, each)) for what, each in shown.items()),
        "{link}": lambda: link(opens, next(iter(shown.values()))),
        "{links}": lambda: "\n".join(
            f"- {link(what if language() == 'zh' else f'Example {place}', each)}"
            for place, (what, each) in enumerate(shown.items(), 1)
        ),
    }
    if not shown:
        raise ValueError(f"{name}: the manual shows no config to copy")
    summary, _, rest = manual.strip().partition("\n")
    if "{examples}" not in rest:
        rest += page_text("\n\nExamples\n\n{examples}\n\n{links}\n\nFields\n\n{fields}\n")
        rest = rest.replace("{links}", "{link}" if len(shown) == 1 else "{links}")
    manual = f"{summary}\n\n{_purpose(writes, when)}\n{rest}"
    for example in shown.values():
        if wrong := config_problems(example):
            raise ValueError(f"{name}: an example would be refused: {wrong}")
    for marker, text in texts.items():
        if marker in manual:
            manual = manual.replace(marker, text())

    def accepted(given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            parsed = config_class(**given)
        except ValidationError as error:
            # Without the values: Dagster has replaced names of environment variables by what these hold.
            problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        else:
            problems = config_problems(parsed)
        if problems:
            raise RefusedConfigError(_listed(nothing_done, problems))
        return _complete(parsed)

    plain = dg.op(description=summary)(run)
    # Dagster maps an op's config when it plans a run, which is before it creates one.
    schema = plain.config_schema.as_field()
    _name_choices(schema.config_type)
    checked = plain.configured(accepted, name=op, config_schema=schema, description=summary)
    graph = dg.GraphDefinition(name=name, node_defs=[checked])
    return graph.to_job(
        name=name, description=manual, config=dg.RunConfig(ops={op: config}), owners=owners(), tags=dict(tags)
    )


def _name_choices(config_type: Any) -> None:
    """Put the members of each enum of a schema into its name, which is all that Dagster says of a misspelt one."""
    for field in getattr(config_type, "fields", {}).values():
        _name_choices(field.config_type)
    if isinstance(config_type, dg.Enum):
        members = ", ".join(value.config_value for value in config_type.enum_values)
        config_type.given_name = f"{config_type.key} ({members})"
    elif hasattr(config_type, "inner_type"):
        _name_choices(config_type.inner_type)


def _purpose(writes: str, when: str) -> str:
    """Return what a job writes and when it is launched, as Markdown."""
    return "\n\n".join((f"**{page_text('What it writes')}** {writes}", f"**{page_text('When to launch it')}** {when}"))


def asset_job_manual(summary: str, *, writes: str, when: str, ops: Mapping[str, dg.Config] | None = None) -> str:
    """Return the description of a job of assets, as `person_job` composes its own: with a config to copy.

    Args:
        summary: What it does.
        writes: What a launch writes.
        when: When to launch it.
        ops: Configs by the name of the asset's op; None for a job that takes none.
    """
    none = page_text("The job takes no config: leave the launchpad as it opens.")
    copied = none if ops is None else f"```yaml\n{_several(ops)}```"
    return "\n\n".join((summary, _purpose(writes, when), copied))


def _several(ops: Mapping[str, dg.Config]) -> str:
    """Return configs of ops in the form of the launchpad, each with the fields that it sets."""
    head, *_ = op_config("", {}).splitlines()
    parts = (op_config(op, _given(config)).partition("\n")[2] for op, config in ops.items())
    return f"{head}\n{''.join(parts)}"


def example_yaml(op: str, config: dg.Config) -> str:
    """Return the fields that ``config`` sets as a YAML block in Markdown, in the form of the launchpad of ``op``."""
    return f"```yaml\n{op_config(op, _given(config))}```"


def _opening(config_class: type[dg.Config], opening: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values of all fields of a launchpad."""
    open_fields = {
        name
        for name, field in config_class.model_fields.items()
        if field.is_required() or field.get_default(call_default_factory=True) is None
    }
    if set(opening) != open_fields:
        raise ValueError(
            f"{config_class.__name__}: opens with {sorted(opening)}, without default {sorted(open_fields)}"
        )
    return {
        name: opening[name] if name in opening else field.get_default(call_default_factory=True)
        for name, field in config_class.model_fields.items()
    }


def _given(config: dg.Config) -> dict[str, Any]:
    """Return the fields that a config sets, in the form of a launchpad: members of enums by their name."""
    return _set_fields(config, _complete(config))


def _complete(config: dg.Config) -> dict[str, Any]:
    """Return all fields of a config in the form of a launchpad: members of enums by their name."""
    complete: dict[str, Any] = dg.RunConfig(ops={"op": config}).to_config_dict()["ops"]["op"]["config"]
    return complete


def _set_fields(config: dg.Config, complete: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in type(config).model_fields:
        if name not in config.model_fields_set:
            continue
        value, written = getattr(config, name), complete[name]
        if isinstance(value, list) and value and isinstance(value[0], dg.Config):
            written = [row(**_set_fields(*each)) for each in zip(value, written, strict=True)]
        given[name] = written
    return given


def _unsigned(config: dg.Config) -> dict[str, Any]:
    """Return the fields that an example sets, without the signing ones, so that launching it only checks."""
    fields, given = type(config).model_fields, _given(config)
    merged = {**given, **{name: field.default for name, field in fields.items() if name in SIGNATURE}}
    return {name: merged[name] for name in fields if name in merged}


def _explained(config: dg.Config, given: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return a short comment for each field of a config, and the fields that the example does not set, with
    defaults."""
    fields = type(config).model_fields
    said = {name: comment_of((field.description or "").partition("；")[0]) for name, field in fields.items()}
    complete = _complete(config)
    others = {name: complete[name] for name in fields if name not in given and complete.get(name) is not None}
    return said, others


def _titled(what: str, block: str) -> str:
    return f"{what}：\n\n{block}" if what and language() == "zh" else block


def _field_list(config_class: type[dg.Config], indent: str = "") -> str:
    """Return the fields of a config class with their descriptions as a Markdown list; fields of its rows are nested."""
    lines: list[str] = []
    colon = page_text(": ")
    for name, field in config_class.model_fields.items():
        lines.append(f"{indent}- `{name}`{colon}{field.description or ''}")
        for part in get_args(field.annotation):
            if isinstance(part, type) and issubclass(part, dg.Config):
                lines.append(_field_list(part, indent + "  "))
    return "\n".join(lines)


def refuse_environment(context: dg.OpExecutionContext) -> None:
    """Refuse a config that refers to an environment variable.

    Dagster resolves ``{env: NAME}`` in any text field, so anyone who may launch could have a secret written down.

    Raises:
        Failure: The config holds such a reference; the message names the variables.
    """

    def names(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [str(value["env"])] if set(value) == {"env"} else []
            return own + [name for item in value.values() for name in names(item)]
        return [name for item in value for name in names(item)] if isinstance(value, list) else []

    asked = names(dict(context.run.run_config))
    if asked:
        raise dg.Failure(
            page_text("A config must not refer to environment variables: {names}").format(names=", ".join(asked)),
            allow_retries=False,
        )


def location_of(run: dg.DagsterRun | None) -> str:
    """Return repository and code location of a run as Dagster's UI addresses them; empty if the run has none.

    Runs that a test or a script executes in its own process have no code location.
    """
    origin = run.remote_job_origin if run is not None else None
    return origin.repository_origin.get_label() if origin is not None else ""


def problems_failure(nothing_done: str, problems: Sequence[str]) -> dg.Failure:
    """Return the failure of a job whose config is wrong: what was not done, and one line per problem."""
    shown = "\n".join(f"- {escaped(each)}" for each in problems)
    return dg.Failure(
        _listed(nothing_done, problems), metadata={"problems": dg.MetadataValue.md(shown)}, allow_retries=False
    )


def _listed(nothing_done: str, problems: Sequence[str]) -> str:
    return "\n".join([f"{nothing_done}：", *(f"- {each}" for each in problems)])
