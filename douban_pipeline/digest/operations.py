"""What the operators' commands ask of the digest system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from douban_pipeline.core.check_results import CheckResult, reached
from douban_pipeline.core.gate_status import closed_gates
from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.operations import Operations
from douban_pipeline.core.werss import SOURCE as WERSS
from douban_pipeline.digest.services import DigestServices
from douban_pipeline.digest.store.tables import gate


class DigestOperations(Operations):
    """The digest system in the operators' commands."""

    def checks(self, services: DigestServices) -> Iterator[CheckResult]:
        """Check that there are sources, an API key for the model, channels for messages, and gates that take calls."""
        settings, engine = services.settings, services.engine
        for source, result in closed_gates(engine, gate, services.clock.now()).items():
            remedy = terminal_text("run digest login once the password is right") if source == WERSS else result.remedy
            yield replace(result, name=f"gate {source}", remedy=remedy)
        if settings.werss_url:
            yield reached("werss", settings.variable("werss_url"), settings.werss_url)
            if not settings.werss_access_key.get_secret_value() and not settings.werss_password.get_secret_value():
                password, key = settings.variable("werss_password"), settings.variable("werss_access_key")
                message = terminal_text("WeRSS is set, but no way to log in")
                yield CheckResult(
                    "werss login",
                    "fail",
                    message,
                    terminal_text("set {password} or {key}").format(password=password, key=key),
                )
        elif not settings.feed_sources:
            url, sources = settings.variable("werss_url"), settings.variable("feed_sources")
            message = terminal_text("there is nothing to digest")
            yield CheckResult(
                "sources", "fail", message, terminal_text("set {url} or {sources}").format(url=url, sources=sources)
            )
        if settings.deepseek_api_key.get_secret_value():
            model, url = settings.deepseek_model, settings.deepseek_url
            yield CheckResult("model", "ok", terminal_text("{model} at {url}").format(model=model, url=url))
        else:
            key = settings.variable("deepseek_api_key")
            yield CheckResult(
                "model", "warn", terminal_text("no key for the model"), terminal_text("set {key}").format(key=key)
            )
        if settings.channels:
            named = ", ".join(settings.channels)
            yield CheckResult("channels", "ok", terminal_text("messages go to {named}").format(named=named))
            if not settings.operator_channels:
                variable, webhook = settings.variable("push_channels"), settings.variable("alert_webhook_url")
                remedy = terminal_text("set {webhook}, or name one of {variable} operator=…")
                message = terminal_text("nobody gets alerts of the digest")
                yield CheckResult("alerts", "warn", message, remedy.format(webhook=webhook, variable=variable))
        else:
            variable = settings.variable("push_channels")
            message = terminal_text("no channel: reports are pages only, no message is sent")
            yield CheckResult("channels", "warn", message, terminal_text("set {variable}").format(variable=variable))


OPERATIONS = DigestOperations()
"""The digest system's."""
