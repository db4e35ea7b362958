"""Pages from Jinja templates, which are files beside the code that renders them.

Pages extend `page.html.j2`; `page_parts.html.j2` holds shared parts; both are in this folder.

Every value is escaped unless it is `Markup`, and using an undefined name is an error. In a
template, ``value | script_json`` is JSON to be put inside a ``<script>`` element, and ``value | short_hashes`` is text
whose hashes are cut short.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from douban_pipeline.core.system import release_line

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = "douban_pipeline.core.ui"
_HASH = re.compile(r"\b[0-9a-f]{40,128}\b")
_HASH_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Card:
    """A number shown at the top of a page.

    Attributes:
        label: What is counted.
        value: The number.
        behind: What is said of it.
        tone: ``good``, ``bad`` or empty.
        address: Where what is counted is found; empty for no link.
    """

    label: str
    value: str
    behind: str = ""
    tone: str = ""
    address: str = ""


def problem_tone(problems: int) -> str:
    """Return the tone of a card that counts problems: good without any, else bad."""
    return "bad" if problems else "good"


def render(package: str, template: str, **values: Any) -> str:
    """Render a template.

    Args:
        package: Dotted name of the package that contains the template.
        template: The file's path inside the package, with slashes; it may extend and import those of `core/ui`.
        values: Values of the template's names.

    Raises:
        jinja2.TemplateNotFound: The package has no such file.
        jinja2.UndefinedError: The template uses a name that is not among ``values``.
    """
    return _environment(package).get_template(template).render(values)


def page_to_come(title: str, about: str, steps: Sequence[Markup]) -> str:
    """Return the page that stands in a page's place until that is written for the first time.

    Args:
        title: What is not written yet.
        about: What will be there, and what writes it.
        steps: What a person may do now, in order.
    """
    chapters = [{"key": "now", "title": "现在就要看"}]
    return render(
        _HERE, "not_written.html.j2", title=title, badge="", about=about, lang="zh-Hans", chapters=chapters, steps=steps
    )


def script_json(value: object) -> Markup:
    """Return JSON that cannot end its script element: it contains neither ``</script>`` nor ``<!--``.

    Raises:
        ValueError: It holds NaN or an infinity, which JSON cannot represent.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704 - escaped on this line


def short_hashes(text: object) -> Markup:
    """Return text, escaped, with only the first digits of long hashes; a pointer or a tap shows the whole."""

    def shortened(found: re.Match[str]) -> str:
        return f'<abbr title="{found[0]}" tabindex="0">{found[0][:_HASH_SHOWN]}…</abbr>'

    return Markup(_HASH.sub(shortened, str(escape(str(text)))))  # noqa: S704 - escaped on this line, hashes are digits


@cache
def _environment(package: str) -> Environment:
    # Imported here: a list in the terminal has cards and figures too, and no page.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "."), PackageLoader(_HERE, ".")]),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["release"] = release_line()
    environment.filters["script_json"] = script_json
    environment.filters["short_hashes"] = short_hashes
    return environment
