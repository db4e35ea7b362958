"""Pages from Jinja templates that are files beside the code that fills them in.

`page.html.j2` is what pages extend, `page_parts.html.j2` holds parts that several of them use; both are in this folder.

Every value is escaped unless it is `Markup`, and a name that the template uses and nobody gives is an error. In a
template, ``value | script_json`` is JSON to be put inside a ``<script>`` element.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_HERE = "douban_pipeline.core.ui"


@dataclass(frozen=True, slots=True)
class Card:
    """A number that is looked at first; ``tone`` is ``good``, ``bad`` or nothing."""

    label: str
    value: str
    behind: str = ""
    tone: str = ""


def render(package: str, template: str, **values: Any) -> str:
    """Return a template filled in.

    Args:
        package: The package the template is a file of, by its dotted name.
        template: The file's path inside the package, with slashes; it may extend and import those of `core/ui`.
        values: What the template names.

    Raises:
        jinja2.TemplateNotFound: The package has no such file.
        jinja2.UndefinedError: The template uses a name that is not among ``values``.
    """
    return _environment(package).get_template(template).render(values)


def script_json(value: object) -> Markup:
    """Return JSON that cannot end the script element it is in: neither ``</script>`` nor ``<!--`` is in it.

    Raises:
        ValueError: It holds NaN or an infinity, which no JSON has.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704 - escaped on this line


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(_HERE, ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["script_json"] = script_json
    return environment
