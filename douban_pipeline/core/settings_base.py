"""Base of all systems' settings: where they are read, and how a mistake is reported.

Values come from the environment, with each system's prefix, and from ``.env`` in the working directory (the
environment takes precedence). Secrets stay there: no setting is ever put into Dagster config, metadata or a log.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from dotenv import dotenv_values
from pydantic import AfterValidator, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from douban_pipeline.core import environment
from douban_pipeline.core.environment import BASE_PREFIX as BASE_PREFIX
from douban_pipeline.core.environment import ENV_ENCODING
from douban_pipeline.core.environment import ENV_FILE as ENV_FILE
from douban_pipeline.core.language import terminal_language, terminal_text

SHARED_VARIABLES = tuple(
    BASE_PREFIX + name for name in ("WERSS_URL", "WERSS_USERNAME", "WERSS_PASSWORD", "WERSS_ACCESS_KEY")
)
"""Variables with the base prefix that not every system reads; see `core.shared_settings`."""


DEFAULT_OWNER = "team:site"
"""Owner of what Dagster shows, unless the settings name another."""
OWNERS = terminal_text("an e-mail address, or team:NAME such as team:site")
"""Allowed values of an owner, as text."""
_OWNER = re.compile(r"team:\S+|[^@\s]+@[^@\s]+\.[A-Za-z]{2,7}")


_NEAR = 0.6
"""Similarity, from 0 to 1, at which a name is taken for a misspelling of another."""


class SettingsError(Exception):
    """One or more settings are wrong; the message names each variable, its value and what is allowed.

    Attributes:
        problems: One line per mistake.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{terminal_text('Wrong settings:')}\n{lines}")
        self.problems = tuple(problems)


class SystemSettings(BaseSettings):
    """Base of a system's settings; create one with `load`, which reports mistakes.

    A system sets ``env_prefix`` in its ``model_config``, and describes in ``allowed`` the values of settings that are
    neither numbers nor booleans.
    """

    model_config = SettingsConfigDict(
        env_file=ENV_FILE, env_file_encoding=ENV_ENCODING, extra="ignore", frozen=True, populate_by_name=True
    )
    allowed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read the settings from ``overrides``, the environment and ``.env``, in this order.

        Raises:
            SettingsError: A value is wrong, or a variable with the system's prefix is unknown. The message has one
                line per mistake with the variable, the value (never of a secret) and what is allowed. Or ``.env`` is
                not UTF-8.
        """
        settings, problems = cls.read(**overrides)
        if problems or settings is None:
            raise SettingsError(problems)
        return settings

    @classmethod
    def read(cls, **overrides: Any) -> tuple[Self | None, list[str]]:
        """Read the settings as `load` does; return them and its lines about mistakes, without raising any.

        Unknown variables and those of earlier releases are left out; None if a value is wrong.
        """
        try:
            problems = cls._unknown_variables()
        except UnicodeDecodeError:
            file = Path(ENV_FILE).absolute()
            return None, [terminal_text("{file} is not UTF-8: save it as UTF-8").format(file=file)]
        try:
            return cls(**overrides), problems
        except ValidationError as error:
            return None, problems + [cls._explain(detail) for detail in error.errors()]

    @classmethod
    def variable(cls, name: str) -> str:
        """Return the environment variable of the setting ``name``."""
        alias = cls.model_fields[name].validation_alias
        return alias if isinstance(alias, str) else cls._prefix() + name.upper()

    @classmethod
    def mistake(cls, name: str, value: object, allowed: str) -> ValueError:
        """Return the error a validator raises for a value that conflicts with another setting."""
        given = f"{cls.variable(name)} = {str(value)!r}"
        return ValueError(terminal_text("{given} is not allowed: {allowed}").format(given=given, allowed=allowed))

    @classmethod
    def _prefix(cls) -> str:
        return cls.model_config.get("env_prefix") or ""

    @classmethod
    def _unknown_variables(cls) -> list[str]:
        known = [*SHARED_VARIABLES, *(cls.variable(name) for name in cls.model_fields)]
        others = tuple(prefix for prefix in own_prefixes() if prefix != cls._prefix())
        problems = []
        for given in sorted({*os.environ, *dotenv_values(ENV_FILE, encoding=ENV_ENCODING)}):
            if given.upper().startswith(others):
                continue
            if given.upper().startswith(cls._prefix()) and given.upper() not in known:
                near = nearest(given.upper(), known)
                meant = terminal_text("; did you mean {near}?").format(near=near) if near else ""
                problems.append(terminal_text("{given} is not a setting").format(given=given) + meant)
        return problems

    @classmethod
    def _explain(cls, detail: Any) -> str:
        if not detail["loc"]:
            return str(detail["ctx"]["error"])
        loc = str(detail["loc"][0])
        name = next((name for name in cls.model_fields if cls.variable(name) == loc), loc.lower())
        field = cls.model_fields.get(name)
        variable = cls.variable(name) if field is not None else cls._prefix() + name.upper()
        allowed = terminal_text("expected ") + (cls.allowed.get(name) or cls._bounds(name) or _expected(detail))
        own = detail["type"] == "value_error"
        # What pydantic says is English; in Chinese, what is expected must do.
        why = _plain(detail["msg"]) if own else ("" if terminal_language() == "zh" else _plain(detail["msg"]))
        if field is not None and field.annotation is SecretStr:
            problem = terminal_text("{variable} is not usable").format(variable=variable)
        else:
            value = str(detail["input"])
            problem = terminal_text("{variable} = {value!r} is not allowed").format(variable=variable, value=value)
        return problem + terminal_text(": ") + terminal_text("; ").join(part for part in (why, allowed) if part)

    @classmethod
    def _bounds(cls, name: str) -> str:
        field = cls.model_fields.get(name)
        if field is not None and field.annotation is bool:
            return terminal_text("true or false")
        if field is None or field.annotation not in (int, float):
            return ""
        whole = field.annotation is int
        words = {
            "ge": terminal_text("from {:g}"),
            "gt": terminal_text("above {:g}"),
            "le": terminal_text("to {:g}"),
        }
        bounds = {each: getattr(item, each) for item in field.metadata for each in words if hasattr(item, each)}
        limits = [text.format(bounds[each]) for each, text in words.items() if each in bounds]
        kind = terminal_text("a whole number") if whole else terminal_text("a number")
        return terminal_text(" ").join([kind, *limits])


def own_prefixes() -> tuple[str, ...]:
    """Return the prefixes of the systems' and the HTTP service's own variables; those of the base system are others."""
    _, *others = environment.SYSTEMS
    return tuple(f"{BASE_PREFIX}{name.upper()}_" for name in (*others, "serve"))


def nearest(given: str, known: Collection[str]) -> str | None:
    """Return which of the variables ``known`` was probably meant by ``given``; None if none is similar.

    Compared without the common prefix, which would make any two similar; the same words in another order, or in other
    forms (``EXCLUDE``, ``EXCLUDED``), count as similar.
    """
    tails = {name.removeprefix(BASE_PREFIX): name for name in known}
    tail = given.removeprefix(BASE_PREFIX)

    def likeness(other: str) -> float:
        in_order = difflib.SequenceMatcher(None, tail, other).ratio()
        words, others = ("_".join(sorted(name.split("_"))) for name in (tail, other))
        return max(in_order, difflib.SequenceMatcher(None, words, others).ratio())

    best = max(tails, key=likeness, default="")
    return tails[best] if best and likeness(best) >= _NEAR else None


def _expected(detail: Any) -> str:
    """Return what a setting without a description of its values must be."""
    choices = detail.get("ctx", {}).get("expected")
    in_chinese = choices and terminal_language() == "zh"
    return str(choices).replace(" or ", " 或 ") if in_chinese else _plain(detail["msg"])


def _plain(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def split_list(value: Any) -> Any:
    """Return the items of a comma-separated text, without blanks; other values unchanged."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.replace("，", ",").split(",") if part.strip()]


def split_pairs(value: Any) -> Any:
    """Return ``name=value`` pairs of a comma-separated text as a mapping; other values unchanged."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in split_list(value)]
    return {name.strip(): given.strip() for name, _, given in pairs}


def refuse_unknown(message: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError with ``message`` about ``{names}`` if some names are not in ``known``."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        names = ", ".join(unknown)
        raise ValueError(terminal_text(message).format(names=names))


def time_zone(value: str) -> str:
    """Return the name of a time zone unchanged.

    Raises:
        ValueError: There is no such zone.
    """
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        raise ValueError(terminal_text("no such time zone")) from None
    return value


def owner_name(value: str) -> str:
    """Return an owner of assets, in a form accepted by Dagster, unchanged.

    Raises:
        ValueError: It is neither an e-mail address nor ``team:NAME``.
    """
    if not _OWNER.fullmatch(value):
        raise ValueError(terminal_text("neither an e-mail address nor team:NAME"))
    return value


def http_address(value: str) -> str:
    """Return an address unchanged.

    Raises:
        ValueError: It is neither http nor https.
    """
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(terminal_text("not an http:// or https:// address"))
    return value


def _http_address_if_any(value: str) -> str:
    return http_address(value) if value else value


HttpAddress = Annotated[str, AfterValidator(_http_address_if_any)]
"""Type of a setting that is an http or https address, or empty."""


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine."""
    host = ""
    try:
        host = urlsplit(url).hostname or ""
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
