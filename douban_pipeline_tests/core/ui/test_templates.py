"""Templates: everything is escaped, nothing is left out silently, and JSON stays inside its script element."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from douban_pipeline.core.ui.templates import render, script_json, short_hashes


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a package with one template."""
    folder = tmp_path / "paged"
    (folder / "pages").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "pages" / "page.html").write_text(
        "<p>{{ text }}</p>\n{% if more %}\n<i>{{ more }}</i>\n{% endif %}\n"
        "<script>{{ [text] | script_json }}</script>\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "paged", raising=False)
    return "paged"


def test_every_value_is_escaped_and_blocks_leave_no_empty_lines(package: str) -> None:
    text = render(package, "pages/page.html", text="<b>&\"'", more="长河")
    assert text == '<p>&lt;b&gt;&amp;&#34;&#39;</p>\n<i>长河</i>\n<script>["\\u003cb\\u003e&\\"\'"]</script>\n'


def test_a_value_that_nobody_gave_is_an_error(package: str) -> None:
    with pytest.raises(jinja2.UndefinedError, match="more"):
        render(package, "pages/page.html", text="x")
    with pytest.raises(jinja2.TemplateNotFound):
        render(package, "pages/none.html")


def test_of_long_hashes_the_first_digits_are_shown() -> None:
    whole = "0123456789abcdef" * 4
    shown = short_hashes(f"<b>事实表 {whole}；影片 1234567890，{whole[:39]}")
    short = f'<abbr title="{whole}" tabindex="0">0123456789…</abbr>'
    assert shown == f"&lt;b&gt;事实表 {short}；影片 1234567890，{whole[:39]}"


@given(st.text())
def test_json_in_a_script_is_the_same_value_and_ends_no_element(text: str) -> None:
    written = script_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert "<" not in written
    assert ">" not in written
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))
