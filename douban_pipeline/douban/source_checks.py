"""Checks whether the sources can be reached, and how each answers one request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from douban_pipeline.core.check_results import CheckResult, reached, shown_address
from douban_pipeline.core.errors import NotFound, SourceError
from douban_pipeline.core.failure_words import failure_text
from douban_pipeline.core.gate_memory import MemoryGate
from douban_pipeline.core.gate_status import closed_gates
from douban_pipeline.core.language import terminal_language, terminal_text
from douban_pipeline.core.llm import SOURCE as LLM
from douban_pipeline.core.settings_base import is_loopback
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.douban_php import DoubanClient
from douban_pipeline.douban.sources.known_titles import FAMOUS, KnownTitles, famous
from douban_pipeline.douban.sources.search import HttpSearch
from douban_pipeline.douban.sources.search_chain import search_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from douban_pipeline.core.http import Fetcher


def reached_results(services: Services, *, usable: bool) -> Iterator[CheckResult]:
    """Check that each source's gate lets calls pass, and that something listens at its address; no request is sent.

    Args:
        services: The services of the system.
        usable: Whether the database can be asked for the gates.
    """
    closed = closed_gates(services.engine, services.gate_table, services.clock.now()) if usable else {}
    for source, (setting, url) in _addresses(services).items():
        if source in closed:
            yield replace(closed[source], name=source)
        elif _proxied(url):
            shown = shown_address(url)
            through = terminal_text("{shown} is asked through the proxy of the environment").format(shown=shown)
            yield CheckResult(source, "ok", through)
        else:
            yield reached(source, setting, url)


def asked_results(services: Services, *, usable: bool) -> Iterator[CheckResult]:
    """Send one request to Douban and to each search, for a known subject, and show the answer.

    It is asked apart from the gate that all processes share: neither does a closed one stop the question, nor does a
    bad answer close it. The language model is paid per call: it is only checked whether it can be reached.
    """
    for source, (setting, url) in _addresses(services).items():
        if source == LLM:
            yield reached(source, setting, url)
            continue
        shown = shown_address(url)
        remedy = terminal_text(
            "check {setting}, open {shown} in a browser on this machine, and read its server's log"
        ).format(setting=setting, shown=shown)
        gate = MemoryGate(services.clock)
        gate.configure(source, requests_per_minute=60, concurrency=1)
        fetcher = services.source_fetcher(source, gate)
        try:
            message = _ask_douban(services, fetcher) if source == DOUBAN else _ask_search(services, fetcher, usable)
            yield CheckResult(source, "ok", f"{shown_address(url)}: {message}")
        except SourceError as error:
            yield CheckResult(source, "fail", f"{setting} = {shown_address(url)}: {_said(error)}", remedy)


def _said(error: SourceError) -> str:
    return failure_text(error.reason, wanted=terminal_language())


def _ask_douban(services: Services, fetcher: Fetcher) -> str:
    douban_id, _, _ = FAMOUS[0]
    try:
        record = DoubanClient(fetcher, services.settings.douban_url).subject(douban_id, max_age=None).record
    except NotFound:
        return terminal_text("answers, but does not know subject {douban_id}, which exists").format(douban_id=douban_id)
    named = "" if record.id_confirmed else terminal_text(", without naming the id")
    return terminal_text("subject {douban_id} is 《{title}》 ({year}){named}").format(
        douban_id=douban_id, title=record.title, year=record.year, named=named
    )


def _ask_search(services: Services, fetcher: Fetcher, usable: bool) -> str:
    source = fetcher.source
    search = cast(HttpSearch, search_from({source: services.settings.search_urls[source]}, lambda _: fetcher))
    titles = KnownTitles(services.engine, services.tables, services.archive)
    known = titles.choose(search) if usable else famous(search, titles.rng)
    text = known.question.wording(titles_only=search.titles_only)
    answer = search.search(known.question, max_age=None)
    there, count, title = known.douban_id in answer.ids, len(answer.hits), answer.hits[0].title if answer.hits else ""
    if terminal_language() == "zh":
        first = f"，第一个《{title}》" if title else ""
        return f"“{text}”得到 {count} 个条目，{'含' if there else '不含'} {known.douban_id}{first}"
    first = f", the first 《{title}》" if title else ""
    return f"{count} subjects for “{text}”, {'with' if there else 'without'} {known.douban_id}{first}"


def _addresses(services: Services) -> Mapping[str, tuple[str, str]]:
    """Return the setting and the address of every source in use."""
    settings = services.settings
    search = variable("search_chain" if settings.search_provider == "chain" else "search_url")
    found = {DOUBAN: (variable("douban_url"), settings.douban_url)}
    found |= {source: (search, url) for source, url in settings.search_urls.items()}
    return found | ({LLM: (variable("llm_url"), settings.llm_url)} if settings.ai_intros else {})


def _proxied(url: str) -> bool:
    """Return whether a request to ``url`` goes through a proxy, so that its host need not be reachable."""
    parts = urlsplit(url)
    proxies = getproxies()
    return (parts.scheme in proxies or "all" in proxies) and not (
        is_loopback(url) or proxy_bypass(parts.hostname or "")
    )
