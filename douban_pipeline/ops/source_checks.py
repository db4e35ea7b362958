"""Whether the sources can be reached, and what each answers to one question."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from douban_pipeline.core.errors import GateClosed, NotFound, SourceError
from douban_pipeline.core.llm import SOURCE as LLM
from douban_pipeline.core.settings_base import is_loopback
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.known_titles import FAMOUS, KnownTitles
from douban_pipeline.douban.sources.search import HttpSearch
from douban_pipeline.douban.sources.search_chain import search_from
from douban_pipeline.ops.results import CheckResult

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671}


def reached_results(services: Services) -> Iterator[CheckResult]:
    """Look whether somebody listens at the address of each source; nothing is asked."""
    for source, (setting, url) in _addresses(services).items():
        if _proxied(url):
            yield CheckResult(source, "ok", f"{_shown(url)} is asked through the proxy of the environment")
        else:
            yield reached(source, setting, url)


def reached(name: str, setting: str, url: str) -> CheckResult:
    """Look whether somebody listens at ``url``, which ``setting`` names; its password is not shown."""
    parts = urlsplit(url)
    remedy = f"check {setting} and that its server runs"
    try:
        port = parts.port or _PORTS.get(parts.scheme, 0)
        with socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS):
            return CheckResult(name, "ok", f"{_shown(url)} answers")
    except TimeoutError:
        return CheckResult(name, "warn", f"{setting} = {_shown(url)} does not answer in {CONNECT_SECONDS:g} s", remedy)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return CheckResult(name, "fail", f"{setting} = {_shown(url)} cannot be reached ({why})", remedy)


def asked_results(services: Services) -> Iterator[CheckResult]:
    """Ask Douban and each search once, for something that they know, and show what came.

    The language model is paid by the call: it is only looked for.
    """
    for source, (setting, url) in _addresses(services).items():
        if source == LLM:
            yield reached(source, setting, url)
            continue
        remedy = f"check {setting}, open {_shown(url)} in a browser on this machine, and read its server's log"
        try:
            message = _ask_douban(services) if source == DOUBAN else _ask_search(services, source)
            yield CheckResult(source, "ok", f"{_shown(url)}: {message}")
        except GateClosed as error:
            yield CheckResult(source, "warn", f"its gate is closed: {error.reason}", "see source_gates, or set_gate")
        except SourceError as error:
            yield CheckResult(source, "fail", f"{setting} = {_shown(url)}: {error.reason}", remedy)


def _ask_douban(services: Services) -> str:
    douban_id, _, _ = FAMOUS[0]
    try:
        record = services.douban.subject(douban_id, max_age=None).record
    except NotFound:
        return f"answers, but does not know subject {douban_id}, which exists"
    named = "" if record.id_confirmed else ", without naming the id"
    return f"subject {douban_id} is 《{record.title}》 ({record.year}){named}"


def _ask_search(services: Services, source: str) -> str:
    search = cast(HttpSearch, search_from({source: services.settings.search_urls[source]}, services.source_fetcher))
    known = KnownTitles(services.engine, services.tables, services.archive).choose(search)
    text = known.question.wording(titles_only=search.titles_only)
    answer = search.search(known.question, max_age=None)
    right = "with" if known.douban_id in answer.ids else "without"
    first = f", the first 《{answer.hits[0].title}》" if answer.hits else ""
    return f"{len(answer.hits)} subjects for “{text}”, {right} {known.douban_id}{first}"


def _addresses(services: Services) -> Mapping[str, tuple[str, str]]:
    """Return the setting and the address of every source in use."""
    settings = services.settings
    search = variable("search_chain" if settings.search_provider == "chain" else "search_url")
    found = {DOUBAN: (variable("douban_url"), settings.douban_url)}
    found |= {source: (search, url) for source, url in settings.search_urls.items()}
    return found | ({LLM: (variable("llm_url"), settings.llm_url)} if settings.ai_intros else {})


def _proxied(url: str) -> bool:
    """Return whether a request to ``url`` goes through a proxy, so that its host need not be within reach."""
    parts = urlsplit(url)
    proxies = getproxies()
    return (parts.scheme in proxies or "all" in proxies) and not (
        is_loopback(url) or proxy_bypass(parts.hostname or "")
    )


def _shown(url: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
