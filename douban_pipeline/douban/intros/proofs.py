"""What a second reading proves of a text: its statements, what is cut, and the form in which it is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from douban_pipeline.douban.intros.factguard import Violation, sentences_of, shown


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a text, with the reader's answer and what our checks say of it.

    Attributes:
        text: The statement, a piece of the text.
        sentence: The number of its sentence, from 0.
        basis: The reader's basis; "" if it gave none.
        passages: The passages that the reader quoted.
        problem: Why it is not backed, in Chinese; "" if it is.
        cut: Whether it was cut from the text for that.
    """

    text: str
    sentence: int
    basis: str
    passages: tuple[str, ...] = ()
    problem: str = ""
    cut: bool = False

    def to_payload(self) -> dict[str, Any]:
        """Return the statement as a JSON object."""
        return {
            "text": self.text,
            "sentence": self.sentence,
            "basis": self.basis,
            "passages": list(self.passages),
            "problem": self.problem,
            "cut": self.cut,
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """The outcome of a second reading.

    Attributes:
        statements: The statements of the text, in order.
        trusted: Whether the reader found no basis for the false statements.
        shortened: The text without the sentences that are not backed, if what is left stands by itself; else "".
    """

    statements: tuple[Statement, ...]
    trusted: bool = True
    shortened: str = ""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Why the text may not be written as it is; empty if it may."""
        if not self.trusted:
            return (Violation("reading", "复核不可信：给故意写错的句子也找到了依据"),)
        return tuple(
            Violation("reading", f"复核认为没有依据：“{shown(each.text, 60)}”（{each.problem}）")
            for each in self.statements
            if each.problem
        )

    def after_cutting(self) -> tuple[tuple[Violation, ...], Reading]:
        """Return what was cut, as violations that did not stop the text, and the reading with those marked."""
        without = {each.sentence for each in self.statements if each.problem}
        cuts = tuple(
            Violation("cut", f"已删去：“{shown(each.text, 60)}”（{each.problem}）")
            for each in self.statements
            if each.problem
        )
        marked = tuple(replace(each, cut=each.sentence in without) for each in self.statements)
        return cuts, replace(self, statements=marked, shortened="")

    def to_payload(self) -> list[dict[str, Any]]:
        """Return the statements as a JSON list, for the record."""
        return [each.to_payload() for each in self.statements]


def stored_statements(stored: Sequence[Mapping[str, Any]], text: str) -> Iterator[Statement]:
    """Yield the statements of a stored reading; readings before `reading-4` hold sentences by number, with quotes.

    Args:
        stored: The reading, as the table of intros holds it.
        text: The text that was read; an entry of an earlier reading without a sentence in it is left out.
    """
    sentences = sentences_of(text)
    for item in stored:
        basis, problem = str(item.get("basis") or ""), str(item.get("problem") or "")
        if "text" in item:
            passages = tuple(map(str, item.get("passages") or ()))
            place = int(item.get("sentence") or 0)
            yield Statement(str(item["text"]), place, basis, passages, problem, bool(item.get("cut")))
            continue
        number = item.get("number")
        if isinstance(number, int) and 0 < number <= len(sentences):
            problem = problem or ("原简介没有讲到" if basis == "none" else "")
            quotes = tuple(map(str, item.get("quotes") or ()))
            yield Statement(sentences[number - 1], number - 1, basis, quotes, problem)
