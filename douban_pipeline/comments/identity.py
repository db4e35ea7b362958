"""Authentication of visitors: signed token, the CMS's own login, or guest. Tokens are JWTs with HS256 only.

Also the names that guests give themselves, and the signed tokens that say which comments a page showed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import jwt
from sqlalchemy import Connection, column, select
from sqlalchemy import table as sql_table

from douban_pipeline.comments.settings import CommentsSettings
from douban_pipeline.comments.types import BIGGEST_ID, BIGGEST_LEVEL, Actor
from douban_pipeline.comments.word_forms import clean, spellings
from douban_pipeline.core.guesses import household

_LEEWAY_SECONDS = 60
_AUDIENCE = "comments"
"""What ``aud`` of a token has to name, if it names anything: a token for another service of the site is none here."""
_LATEST = 253_402_300_799
"""The last second of the year 9999; what is later, or no number, is no time."""


_SIGNATURE_ALONE: Any = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}
"""What a token claims is compared here: with the service's own clock, and whatever a claim holds."""


class TokenError(ValueError):
    """A token is invalid or has expired; the message says why."""


class UnsignedError(TokenError):
    """A token was not signed by the site; it may be a guess."""


def read_token(token: str, secret: str, now: datetime) -> Actor:
    """Return the user of a token: ``sub`` is the user's id; ``name`` and ``level`` are optional.

    Raises:
        UnsignedError: It is no token, or its signature or algorithm (not HS256) is wrong.
        TokenError: It is not valid now, it names no user, or it is for another service.
    """
    claims = verified(token, secret.encode(), now)
    subject = str(claims.get("sub", ""))
    if not subject.isdecimal() or not 0 < int(subject) <= BIGGEST_ID:
        raise TokenError("令牌没有说明是谁")
    audience = claims.get("aud", _AUDIENCE)
    if _AUDIENCE not in (audience if isinstance(audience, list) else [audience]):
        raise TokenError("令牌不是给评论的")
    user_id = int(subject)
    return Actor(f"u:{user_id}", user_id, cleaned(str(claims.get("name", ""))), _level(claims.get("level", 0)))


def make_token(user_id: int, secret: str, expires: datetime, **claims: Any) -> str:
    """Return a token for a user, as the site's own login would create it."""
    return signed({"sub": str(user_id), **claims}, secret.encode(), expires)


def verified(token: str, key: bytes, now: datetime, *, leeway: int = _LEEWAY_SECONDS) -> dict[str, Any]:
    """Return the claims of a token, valid for ``leeway`` seconds more than it says: clocks differ.

    Raises:
        UnsignedError: It is no token, or its signature or algorithm (not HS256) is wrong.
        TokenError: It is not valid now.
    """
    if not key:
        raise UnsignedError("不是令牌")
    try:
        claims: dict[str, Any] = jwt.decode(token, key, ["HS256"], options=_SIGNATURE_ALONE)
    except (jwt.InvalidTokenError, ValueError, RecursionError) as error:
        raise UnsignedError("不是令牌，或签名不正确") from error
    moment = now.timestamp()
    if not moment - leeway <= _time(claims.get("exp")) <= _LATEST:
        raise TokenError("令牌已过期")
    if not 0 <= _time(claims.get("nbf", 0)) <= moment + leeway:
        raise TokenError("令牌尚未生效")
    return claims


def _time(given: object) -> float:
    return given if isinstance(given, int | float) and not isinstance(given, bool) else -1


def signed(claims: Mapping[str, Any], key: bytes, expires: datetime) -> str:
    """Return a token with these claims that is valid until ``expires``."""
    return jwt.encode({"exp": int(expires.timestamp()), **claims}, key, "HS256")


def guest(address: str, agent: str) -> Actor:
    """Return a guest, identified by address and browser."""
    return _guest(f"{address}\n{agent}")


def guests_at(address: str) -> Actor:
    """Return all guests at an address as one, whatever browsers they name; of IPv6 at a network of one household."""
    return _guest(household(address))


def _guest(identifier: str) -> Actor:
    return Actor(f"g:{hashlib.sha256(identifier.encode()).hexdigest()[:24]}")


_LOGIN_COLUMNS = ("user_id", "user_name", "user_nick_name", "group_id", "user_status", "user_random")
USER_COLUMNS = (*_LOGIN_COLUMNS, "user_portrait")
"""All columns read from the CMS's users."""
_PORTRAIT = re.compile(r"/?(upload/[\w-]+(?:[/.][\w-]+)*)(?:\?[\w=&.]*)?", re.ASCII)


class CmsUsers:
    """The CMS's users, read only."""

    def __init__(self, prefix: str) -> None:
        self._user = sql_table(f"{prefix}user", *(column(name) for name in USER_COLUMNS))

    def logged_in(self, connection: Connection, cookies: Mapping[str, str]) -> Actor | None:
        """Return the user that the CMS's login cookies identify; None without valid cookies."""
        user_id, given = cookies.get("user_id", ""), cookies.get("user_check", "")
        if not user_id.isdecimal() or len(user_id) > 19 or len(given) != 32 or not given.isascii():
            return None
        c = self._user.c
        query = select(*(c[name] for name in _LOGIN_COLUMNS)).where(c.user_id == int(user_id), c.user_status == 1)
        row = connection.execute(query).one_or_none()
        if row is None or not row.user_random or unquote(cookies.get("user_name", "")) != row.user_name:
            return None
        # Formats of current and of older versions of the CMS.
        marks = (f"{row.user_random}-{row.user_name}-{row.user_id}-", f"{row.user_random}-{row.user_id}")
        for mark in marks:
            if hmac.compare_digest(hashlib.md5(mark.encode(), usedforsecurity=False).hexdigest(), given.lower()):
                name = row.user_nick_name or row.user_name
                return Actor(f"u:{row.user_id}", int(row.user_id), cleaned(str(name)), _level(row.group_id))
        return None

    def portraits(self, connection: Connection, users: Sequence[int]) -> dict[int, str]:
        """Return the paths of the pictures that users chose in the CMS, by id; users without one are missing."""
        c = self._user.c
        query = select(c.user_id, c.user_portrait).where(c.user_id.in_(users), c.user_portrait != "")
        found = ((int(row.user_id), _PORTRAIT.fullmatch(row.user_portrait)) for row in connection.execute(query))
        return {user: f"/{path[1]}" for user, path in found if path is not None}


def _level(given: object) -> int:
    """Return a level, or the first of the CMS's groups, as a number that its column can hold; 0 for anything else."""
    first = str(given).partition(",")[0]
    return min(int(first), BIGGEST_LEVEL) if first.isdecimal() and len(first) < 10 else 0


_LONGEST_NAME = 60
_RESERVED_HAN = ("管理", "站长", "官方", "版主", "客服", "系统消息", "小编", "工作人员", "审核员", "站务")
_RESERVED_LATIN = ("admin", "administrator", "moderator", "official", "staff", "webmaster", "system", "root", "support")


def cleaned(name: str) -> str:
    """Return a name without control characters, marks of direction and invisible ones, and with single blanks."""
    return " ".join(clean(unicodedata.normalize("NFKC", name)).split())[:_LONGEST_NAME].strip()


def is_reserved(name: str) -> bool:
    """Return whether a name is one that only the site's staff may have, or looks like one."""
    for letters in spellings(name):
        latin = "".join(letter for letter in letters if letter.isascii() and letter.isalpha())
        if any(word in letters for word in _RESERVED_HAN) or latin in _RESERVED_LATIN:
            return True
        if latin.startswith("admin") or latin.endswith("admin"):
            return True
    return False


_WINDOW_SECONDS = 600
"""Tokens issued within a window are equal, so that an unchanged page keeps its ETag; each is valid until the end of the
next window: a page reports what it shows as soon as it shows it."""
_PURPOSE = b"douban_pipeline comments view 1"


class ViewTokens:
    """Issues and reads the tokens.

    Args:
        settings: The first secret that is set among those of visitors' tokens, operators and auditors signs them, so
            that all processes of a site read each other's; where none is set, each process reads its own alone.
    """

    def __init__(self, settings: CommentsSettings) -> None:
        given = (settings.token_secret, settings.admin_token, settings.audit_token)
        secret = next((each.get_secret_value() for each in given if each.get_secret_value()), "")
        self._key = hmac.new((secret or secrets.token_hex(32)).encode(), _PURPOSE, hashlib.sha256).digest()

    def window(self, now: datetime) -> int:
        """Return the number of the window that a moment is in."""
        return int(now.timestamp()) // _WINDOW_SECONDS

    def issue(self, section_id: int, ids: Sequence[int], now: datetime) -> str:
        """Return the token of a page that shows these comments of a section."""
        expires = datetime.fromtimestamp((self.window(now) + 2) * _WINDOW_SECONDS, UTC)
        return signed({"section": section_id, "ids": [str(number) for number in ids]}, self._key, expires)

    def read(self, token: str, now: datetime) -> frozenset[int]:
        """Return the comments that the page of a token showed.

        Raises:
            TokenError: It is not one of ours, or has expired.
        """
        claims = verified(token, self._key, now, leeway=0)
        if "section" not in claims:
            raise TokenError("不是展现凭证")
        return frozenset(int(number) for number in claims["ids"])
