"""Settings of the service; `core.settings_base` reads them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from douban_pipeline.core.language import terminal_text
from douban_pipeline.core.settings_base import BASE_PREFIX, SystemSettings, is_loopback

PREFIX = f"{BASE_PREFIX}SERVE_"
LEAST_TOKEN = 16


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ServeSettings(SystemSettings):
    """Settings of the service itself; each system's pages are configured by its own settings."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)
    allowed: ClassVar[Mapping[str, str]] = {
        "host": terminal_text("an address of this machine"),
        "token": terminal_text(
            "at least {least_token} characters, such as the output of `openssl rand -hex 24`"
        ).format(least_token=LEAST_TOKEN),
        "proxies": terminal_text("IP addresses or networks, separated by commas, such as 127.0.0.1,10.0.0.0/8"),
    }

    host: str = Field(
        "127.0.0.1", min_length=1, description="Address to listen on; any but loopback needs SERVE_TOKEN."
    )
    port: int = Field(8780, ge=0, le=65_535, description="Port to listen on.")
    token: SecretStr = Field(
        SecretStr(""), description="Token for the login, and bearer token of programs; empty disables the login."
    )
    processes: int = Field(1, ge=1, le=64, description="Number of processes that serve the port.")
    remember_me_days: int = Field(30, ge=1, le=365, description="Days for which a remembered login is valid.")

    user_header: str = Field(
        "",
        pattern=r"^[A-Za-z0-9-]*$",
        description="Header with the user authenticated by the reverse proxy; empty trusts none.",
    )
    proxies: str = Field(
        "",
        description="Addresses or networks of the proxies whose X-Forwarded-For and user are believed; empty: none.",
    )

    @field_validator("token")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        given = value.get_secret_value()
        if given and len(given) < LEAST_TOKEN:
            raise ValueError(terminal_text("too short"))
        return value

    @field_validator("proxies")
    @classmethod
    def _addresses(cls, value: str) -> str:
        _networks(value)
        return value

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if not self.listens_on_loopback and not self.token.get_secret_value():
            needed = terminal_text("an address other than loopback needs {prefix}TOKEN").format(prefix=PREFIX)
            raise self.mistake("host", self.host, needed)
        if self.user_header and not self.proxies.strip():
            needed = terminal_text("{prefix}PROXIES must name the proxy that sends it, such as 127.0.0.1").format(
                prefix=PREFIX
            )
            raise self.mistake("user_header", self.user_header, needed)
        return self

    @property
    def proxy_networks(self) -> list[Network]:
        """The proxies, each as a network."""
        return _networks(self.proxies)

    @property
    def listens_on_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(f"http://{f'[{self.host}]' if ':' in self.host else self.host}")


def _networks(text: str) -> list[Network]:
    """Return the networks in a text; an address is a network of its own. Raises a ValueError for anything else."""
    return [ipaddress.ip_network(part) for part in text.replace(",", " ").split()]


def load_settings(**overrides: Any) -> ServeSettings:
    """Return the current settings; see `SystemSettings.load`."""
    return ServeSettings.load(**overrides)
