"""Checks whether the sources can be reached, and how each answers one request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from douban_pipeline.core.address_checks import reached, shown_address
from douban_pipeline.core.check_results import CheckResult
from douban_pipeline.core.errors import GateClosed, NotFound, SourceError
from douban_pipeline.core.llm import SOURCE as LLM
from douban_pipeline.core.settings_base import is_loopback
from douban_pipeline.core.ui.language import said, terminal_language
from douban_pipeline.douban.services import Services
from douban_pipeline.douban.settings import variable
from douban_pipeline.douban.sources.douban_php import SOURCE as DOUBAN
from douban_pipeline.douban.sources.known_titles import FAMOUS, KnownTitles
from douban_pipeline.douban.sources.search import HttpSearch
from douban_pipeline.douban.sources.search_chain import search_from

if TYPE_CHECKING:
    from collections.abc import Mapping


def reached_results(services: Services) -> Iterator[CheckResult]:
    """Check that something listens at the address of each source; no request is sent."""
    for source, (setting, url) in _addresses(services).items():
        if _proxied(url):
            shown = shown_address(url)
            through = said(f"{shown} 经环境变量中的代理访问", f"{shown} is asked through the proxy of the environment")
            yield CheckResult(source, "ok", through)
        else:
            yield reached(source, setting, url)


def asked_results(services: Services) -> Iterator[CheckResult]:
    """Send one request to Douban and to each search, for a known subject, and show the answer.

    The language model is paid per call: it is only checked whether it can be reached.
    """
    for source, (setting, url) in _addresses(services).items():
        if source == LLM:
            yield reached(source, setting, url)
            continue
        shown = shown_address(url)
        remedy = said(
            f"检查 {setting}，在本机浏览器中打开 {shown}，并查看其服务器的日志",
            f"check {setting}, open {shown} in a browser on this machine, and read its server's log",
        )
        try:
            message = _ask_douban(services) if source == DOUBAN else _ask_search(services, source)
            yield CheckResult(source, "ok", f"{shown_address(url)}: {message}")
        except GateClosed as error:
            closed = said(f"闸门已关闭：{error.reason}", f"its gate is closed: {error.reason}")
            yield CheckResult(
                source, "warn", closed, said("见 source_gates，或用 set_gate", "see source_gates, or set_gate")
            )
        except SourceError as error:
            yield CheckResult(source, "fail", f"{setting} = {shown_address(url)}: {error.reason}", remedy)


def _ask_douban(services: Services) -> str:
    douban_id, _, _ = FAMOUS[0]
    try:
        record = services.douban.subject(douban_id, max_age=None).record
    except NotFound:
        return said(
            f"有应答，但不知道确实存在的条目 {douban_id}",
            f"answers, but does not know subject {douban_id}, which exists",
        )
    named = "" if record.id_confirmed else said("，没有写明 ID", ", without naming the id")
    return said(
        f"条目 {douban_id} 是《{record.title}》（{record.year}）{named}",
        f"subject {douban_id} is 《{record.title}》 ({record.year}){named}",
    )


def _ask_search(services: Services, source: str) -> str:
    search = cast(HttpSearch, search_from({source: services.settings.search_urls[source]}, services.source_fetcher))
    known = KnownTitles(services.engine, services.tables, services.archive).choose(search)
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
