"""The canonical form of a link, by which one story in several sources is known. Pure."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_NOISE = re.compile(r"^(utm_\w+|fbclid|gclid|mc_cid|mc_eid|spm|scm|igshid|ref_src|from_source)$", re.IGNORECASE)


def canonical_link(link: str) -> str:
    """Return a link in the form that is equal for the addresses of one page: https, without ``www.``, default port,
    fragment, closing slash and the parameters by which senders count their readers; empty for no link."""
    try:
        parts = urlsplit(link)
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return link
    if not parts.hostname:
        return link
    query = urlencode([pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _NOISE.match(pair[0])])
    host = parts.hostname.removeprefix("www.")
    return urlunsplit(("https", host + port, parts.path.rstrip("/"), query if query else "", ""))
