"""The keys of the configuration file. A key that is not here is refused, with its line.

Values are what the file says, in units the code uses: durations are seconds, sizes bytes. What depends on several keys
is decided in `crosscheck.py`, what depends on the provider in `gateway/catalog.py`.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, field_serializer
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from gateway.__about__ import ENV_PREFIX
from gateway.config.model_settings import ModelSettings
from gateway.config.provider_settings import ProviderSettings
from gateway.config.section import Section
from gateway.config.units import Bytes, Seconds

PATTERN_END = "/*"
"""How the name of a model for many fine-tunes ends."""

_PASSWORD = re.compile(r"(://[^:/@]*:)[^/]*@")


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


class ServerSettings(Section):
    """Where to listen, and the limits of a request."""

    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 for all.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    workers: int = Field(default=1, ge=1, le=128, description="Processes that answer requests.")
    request_timeout: Seconds = Field(
        default=600.0, description="Longest a request may take in all, unless its model says."
    )
    stream_keepalive: Seconds = Field(default=15.0, description="Silence after which a stream gets a comment line.")
    max_body: Bytes = Field(default=20 * 1024**2, description="Largest request body.")
    drain_timeout: Seconds = Field(default=120.0, description="How long running requests may go on after SIGTERM.")
    upstream_client: Literal["own", "httpx"] = Field(
        default="own", description="HTTP client; httpx for proxies and HTTP/2."
    )
    upstream_proxy: Annotated[SecretStr | None, BeforeValidator(_none_if_empty)] = Field(
        default=None, description="Proxy to reach providers by, with upstream_client: httpx; may hold a password."
    )
    fetch_private_addresses: bool = Field(
        default=False, description="Fetch images for engines from addresses of your own network too."
    )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


class AuthSettings(Section):
    """Who may use the gateway."""

    mode: Literal["keys", "open"] = Field(
        default="keys", description="keys: every request needs one. open: loopback only."
    )
    admin_key: Annotated[SecretStr | None, BeforeValidator(_none_if_empty)] = Field(
        default=None, description="The key of /admin; without one /admin answers 403."
    )


class StorageSettings(Section):
    """Where keys and the request log live."""

    database_url: SecretStr = Field(
        default=SecretStr("sqlite+aiosqlite:///./gateway.db"), description="SQLite or PostgreSQL; may hold a password."
    )

    @field_serializer("database_url", when_used="json")
    def _without_password(self, url: SecretStr) -> str:
        return _PASSWORD.sub(r"\1***@", url.get_secret_value())


class LocalEngineSettings(Section):
    """What the bundled engines share."""

    max_loaded: int | None = Field(default=None, ge=1, description="Most local models in memory at a time; all.")


class TelemetrySettings(Section):
    """What the gateway tells about itself."""

    metrics: bool = Field(default=True, description="Serve /metrics.")
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto: console on a terminal, else json."
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="Least severe lines to write."
    )


class Settings(BaseSettings):
    """Everything the configuration file, the environment and the command line decide. Never changes once built."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, hide_input_in_errors=True
    )

    version: Literal[1] = Field(default=1, description="The version of this file's shape.")
    server: ServerSettings = Field(default=ServerSettings(), description="Where to listen, and limits.")
    auth: AuthSettings = Field(default=AuthSettings(), description="Who may use the gateway.")
    storage: StorageSettings = Field(default=StorageSettings(), description="Where keys and the request log live.")
    providers: dict[str, ProviderSettings] = Field(default={}, description="A name of yours, and how to reach it.")
    models: dict[str, ModelSettings] = Field(default={}, description="What clients put in model, and who answers.")
    aliases: dict[str, str] = Field(default={}, description="Other names of models; * stands for anything.")
    local_engine: LocalEngineSettings = Field(
        default=LocalEngineSettings(), description="What the bundled engines share."
    )
    expose_provider_models: bool = Field(default=False, description="Accept provider/model too.")
    response_model: Literal["upstream", "alias"] = Field(
        default="upstream", description="What model in an answer says."
    )
    telemetry: TelemetrySettings = Field(
        default=TelemetrySettings(), description="What the gateway tells about itself."
    )

    notes: tuple[str, ...] = Field(
        default=(), exclude=True, description="Remarks for the console; never read from a file."
    )
    source: str = Field(default="", exclude=True, description="The file's name; empty without one.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is handed in: `load_settings` reads the environment, and can name the variable in an error."""
        return (init_settings,)


NOT_IN_FILE = ("notes", "source")
"""Fields of `Settings` that are no keys of the file."""
