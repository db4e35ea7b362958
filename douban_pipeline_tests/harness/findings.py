"""What `check` can say, read from the code: each `CheckResult` that warns or fails, as templates of its texts.

A text that is looked up in the catalogue is read in either language; what only a run can know is shown as ``…``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import douban_pipeline
from douban_pipeline.core.language import Language, translated
from douban_pipeline.feeds.alerts import TITLES as FEED_TITLES

PACKAGE = Path(douban_pipeline.__file__).parent
_VARIES = "…"
_LOOK_UPS = ("terminal_text", "page_text", "reader_text", "translatable")


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: the system whose check it is, the check's name, and the texts of message and remedy."""

    system: str
    name: str
    message: str
    remedy: str


def findings(language: Language) -> list[Finding]:
    """Return every finding that is a problem, in a language; those whose message only a run knows are left out."""
    found: dict[tuple[str, str, str], Finding] = {}
    for path in sorted(PACKAGE.rglob("operations.py")) + _others():
        module = _Module(path, language)
        for function, call in module.problems():
            name, _, message, *rest = call.args
            # Where a text differs by what was found, there is a finding for each.
            messages = module.texts(message, function)
            remedies = [each for each in module.texts(rest[0], function) if each] if rest else []
            for number, text in enumerate(messages):
                remedy = remedies[number if len(remedies) == len(messages) else -1] if remedies else ""
                system = path.relative_to(PACKAGE).parts[0]
                label = module.texts(name, function)[0].partition(" ")[0]
                if text.strip(f"{_VARIES} :：;；()（）,") and text not in ("", _VARIES):
                    key = "" if system in ("ops", "core") else system, label, text
                    found.setdefault(key, Finding(*key, "" if remedy == _VARIES else remedy))
    return list(found.values())


def _others() -> list[Path]:
    with_results = (path for path in PACKAGE.rglob("*.py") if "CheckResult(" in path.read_text(encoding="utf-8"))
    known = set(PACKAGE.rglob("operations.py"))
    # Results of asset checks and of pages are shown where they arise, with links.
    shown_in_dagster = ("checks.py", "assets.py", "guard_checks.py", "system_states.py")
    return sorted(path for path in with_results if path not in known and path.name not in shown_in_dagster)


class _Module:
    """A module's functions and constants, whose texts are resolved without running them."""

    def __init__(self, path: Path, language: Language) -> None:
        self._language = language
        self._tree = _parsed(path)
        self._functions = {each.name: each for each in ast.walk(self._tree) if isinstance(each, ast.FunctionDef)}

    def functions(self) -> list[ast.FunctionDef]:
        return list(self._functions.values())

    def problems(self) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
        for function in self._functions.values():
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "CheckResult" and len(call.args) > 2:
                    state = call.args[1]
                    if not (isinstance(state, ast.Constant) and state.value == "ok"):
                        yield function, call

    def texts(self, node: ast.expr, function: ast.FunctionDef, depth: int = 0) -> list[str]:
        if depth > 8:
            return [_VARIES]

        def of(inner: ast.expr) -> list[str]:
            return self.texts(inner, function, depth + 1)

        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.JoinedStr(values=parts):
                return [
                    _joined([of(part.value if isinstance(part, ast.FormattedValue) else part)[0] for part in parts])
                ]
            case ast.BinOp(left=left, right=right):
                return [_joined([first, second]) for first in of(left) for second in of(right)]
            case ast.IfExp(body=body, orelse=other):
                return [*of(body), *of(other)]
            case ast.BoolOp(values=[*_, last]):
                return of(last)
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text)), *_]) if name in _LOOK_UPS:
                return [_templated(translated(text, self._language))]
            case ast.Call(func=ast.Attribute(value=inner, attr="format"), keywords=given) if given:
                values = {each.arg: of(each.value)[0] for each in given if each.arg}
                return [_filled(text, values) for text in of(inner)]
            case ast.Call(func=ast.Name(id=name)) if name in self._functions:
                called = self._functions[name]
                returned = [each.value for each in ast.walk(called) if isinstance(each, ast.Return) and each.value]
                return [text for value in returned for text in self.texts(value, called, depth + 1)] or [_VARIES]
            case ast.Name(id=name):
                assigned = self._assigned(name, function, node.lineno)
                return of(assigned) if assigned is not None else [_VARIES]
            case _:
                return [_VARIES]

    def _assigned(self, name: str, function: ast.FunctionDef, before: int) -> ast.expr | None:
        inside = [each for each in ast.walk(function) if isinstance(each, ast.Assign) and each.lineno < before]
        outside = [each for each in self._tree.body if isinstance(each, ast.Assign)]
        for scope in (inside, outside):
            given = [(each.lineno, value) for each in scope for value in _given(each, name)]
            if given:
                return max(given, key=lambda each: each[0])[1]
        return None


def _given(assigned: ast.Assign, name: str) -> Iterator[ast.expr]:
    for target in assigned.targets:
        pairs = [(target, assigned.value)]
        if isinstance(target, ast.Tuple) and isinstance(assigned.value, ast.Tuple):
            pairs = list(zip(target.elts, assigned.value.elts, strict=True))
        yield from (value for each, value in pairs if isinstance(each, ast.Name) and each.id == name)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _templated(text: str) -> str:
    return re.sub(r"\{(\w*)[^{}]*\}", r"{\1}", text)


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w*)\}", lambda field: values.get(field.group(1), _VARIES), text)


def alert_titles() -> list[str]:
    """Return the titles of all alerts, which are Chinese in either language."""
    causes = PACKAGE / "douban" / "reports" / "health" / "causes.py"
    module = _Module(causes, "zh")
    found = [
        text
        for function in module.functions()
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Cause"
        for text in module.texts(call.args[2], function)
    ]
    return [*found, *(title.replace("{}", _VARIES) for title in FEED_TITLES.values())]


def _joined(parts: list[str]) -> str:
    return re.sub(rf"{_VARIES}+", _VARIES, "".join(parts))
