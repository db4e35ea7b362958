"""What all jobs have in common that people launch with a config."""

from collections.abc import Sequence

import dagster as dg

from douban_pipeline.core.ui.presentation import escaped

PERSON_TAGS = {"dagster/priority": "10", "pipeline": "person"}
"""People do not queue behind the machine."""


def refuse_environment(context: dg.OpExecutionContext) -> None:
    """Refuse a config that asks for an environment variable.

    Dagster resolves ``{env: NAME}`` in any text field, so that whoever may launch could have a secret written down.
    """

    def names(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [str(value["env"])] if set(value) == {"env"} else []
            return own + [name for item in value.values() for name in names(item)]
        return [name for item in value for name in names(item)] if isinstance(value, list) else []

    asked = names(dict(context.run.run_config))
    if asked:
        raise dg.Failure(f"配置中不得引用环境变量：{', '.join(asked)}", allow_retries=False)


def location_of(run: dg.DagsterRun | None) -> str:
    """Return repository and code location of a run as Dagster's UI addresses them; empty where the run has none.

    Runs that a test or a script executes in its own process come from no code location.
    """
    origin = run.remote_job_origin if run is not None else None
    return origin.repository_origin.get_label() if origin is not None else ""


def problems_failure(what: str, problems: Sequence[str]) -> dg.Failure:
    """Return the failure of a job whose config is wrong: ``what`` was not done, and a line for each problem."""
    told, shown = ("\n".join(f"- {each}" for each in form) for form in (problems, map(escaped, problems)))
    return dg.Failure(f"{what}：\n{told}", metadata={"problems": dg.MetadataValue.md(shown)}, allow_retries=False)
