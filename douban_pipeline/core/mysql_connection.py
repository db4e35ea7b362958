"""How a connection to MariaDB or MySQL is made; apart, so that PyMySQL is loaded only where it is used."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pymysql.connections import Connection


def connected(_dialect: object, _record: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Connection:
    """Return a connection; called by SQLAlchemy (`do_connect`)."""
    return _Connection(*args, **kwargs)


class _Connection(Connection):
    """A connection that makes no TLS context of its own unless the URL has options for one.

    PyMySQL makes one for each connection, in case the server offers TLS, and loads the system's certificates into it
    although nothing is verified without a CA: 19 of the 20 ms of connecting. A context may serve many connections.
    """

    def _create_ssl_ctx(self, sslp: dict[str, Any] | ssl.SSLContext) -> ssl.SSLContext:
        private = super()._create_ssl_ctx  # type: ignore[misc]  # types-PyMySQL names public methods only
        return private(sslp) if sslp else _unverified_context()


@cache
def _unverified_context() -> ssl.SSLContext:
    """Return a context that encrypts and verifies nothing, as PyMySQL's where no CA is named."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
