"""Which language is chosen, and how texts of the catalogue are found."""

from __future__ import annotations

from gettext import NullTranslations

import pytest

from douban_pipeline.core import language as module
from douban_pipeline.core.language import (
    Language,
    chosen_language,
    page_docstring,
    page_text,
    read_in,
    terminal_text,
    translatable,
    translated,
)


@pytest.mark.parametrize(("given", "language"), [("zh", "zh"), (" EN ", "en"), ("", None), (None, None), ("fr", None)])
def test_the_environment_chooses_one_of_two_languages(given: str | None, language: Language | None) -> None:
    assert chosen_language({"DOUBAN_PIPELINE_LANGUAGE": given}) == language


class Catalogue(NullTranslations):
    """Chinese texts by context and English text."""

    def __init__(self, texts: dict[tuple[str, str], str]) -> None:
        super().__init__()
        self.texts = texts

    def gettext(self, message: str) -> str:
        return self.texts.get(("", message), message)

    def pgettext(self, context: str, message: str) -> str:
        return self.texts.get((context, message), message)


def test_what_the_catalogue_does_not_have_stays_english() -> None:
    assert translated("no such text", "zh") == "no such text" == translatable("no such text")
    assert translated("no such text", "en") == "no such text"


def test_the_terminal_and_the_pages_have_a_language_each(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = Catalogue({("", "a {b}"): "甲 {b}", ("digest", "a {b}"): "乙 {b}"})
    monkeypatch.setattr(module, "catalogue", lambda: texts)
    monkeypatch.setattr(module, "terminal_language", lambda: "en")
    monkeypatch.setattr(module, "language", lambda: "zh")
    assert terminal_text("a {b}").format(b=1) == "a 1"
    assert page_text("a {b}").format(b=1) == "甲 1"
    assert page_text("a {b}", "digest").format(b=1) == "乙 1"


@pytest.mark.parametrize(("language", "shown"), [("en", "What it does.\n\n    Why."), ("zh", "做什么")])
def test_a_docstring_is_shown_in_the_language_of_the_pages(
    language: Language, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def function() -> None: ...

    function.__doc__ = "What it does.\n\n    Why."
    monkeypatch.setattr(module, "catalogue", lambda: Catalogue({("", "What it does.\n\nWhy."): "做什么"}))
    monkeypatch.setattr(module, "language", lambda: language)
    assert page_docstring(function) is function
    assert function.__doc__ == shown


def test_a_reader_at_no_terminal_has_a_language_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "terminal_language", lambda: "en")
    with read_in("zh"):
        assert terminal_text("nothing waits") == "没有等待的"
    assert terminal_text("nothing waits") == "nothing waits"
