"""Signed tokens that say which comments a page showed, so that impressions count only of what was served. No I/O."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from douban_pipeline.comments.identity import TokenError, signed, verified
from douban_pipeline.comments.settings import CommentsSettings

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
