"""The keys of the configuration file. A key that is not here is refused, with its line.

Values are what the file says, in units the code uses: durations are seconds, sizes bytes. What depends on several keys
is decided in `crosscheck.py`, what depends on the provider in `gateway/catalog.py`.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_serializer
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from adapters.spec import ProviderSpec
from gateway.__about__ import ENV_PREFIX
from gateway.config.model_settings import ModelSettings
from gateway.config.section import Section
from gateway.config.units import Bytes, Seconds

LOCAL_TYPE = "local"
"""The provider type of the bundled engine."""

BRIDGE_TYPE = "litellm_bridge"
"""The provider type that is reached through the litellm library, in a process of its own."""

BRIDGE_MEMORY_BYTES = 2 * 1024**3
"""What that process may take when the file does not say."""

PATTERN_END = "/*"
"""How the name of a model for many fine-tunes ends."""

LOCAL_CONTEXT = 4096
LOCAL_SLOTS = 2
"""What the bundled engine takes when the file does not say."""


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


class LoraSettings(Section):
    """A LoRA adapter of a local model."""

    path: Path = Field(description="Its GGUF file.")
    scale: float = Field(default=1.0, gt=-100, lt=100, description="How strongly it is applied.")
    name: str = Field(default="", description="Apply it only to requests for this part of a model named 'something/*'.")


class LocalEngineSettings(Section):
    """What the bundled engines share."""

    max_loaded: int | None = Field(default=None, ge=1, description="Most local models in memory at a time; all.")


class ProviderSettings(Section):
    """How to reach one provider; keys from `model` on belong to `type: local`, from `options` on to bridges alone."""

    type: str = Field(description="A provider type: local, openai_compatible, groq, ...")
    base_url: str | None = Field(default=None, description="Where the API is; the type's own address when left out.")
    api_key: SecretStr | None = Field(default=None, description="The provider's key; empty disables the provider.")
    api_keys: tuple[SecretStr, ...] = Field(default=(), description="Several keys, used in turn.")
    unix_socket: Path | None = Field(default=None, description="A socket to reach the server by, in place of base_url.")
    ca_file: Path | None = Field(default=None, description="Certificates to trust, in place of the system's.")
    client_cert: Path | None = Field(default=None, description="Certificate to show, for mutual TLS.")
    client_key: Path | None = Field(default=None, description="Its private key.")
    headers: dict[str, SecretStr] = Field(default={}, description="Extra headers for each request.")
    max_concurrency: int | None = Field(
        default=None, ge=1, description="Most requests at a time; more get the next target."
    )
    connect_timeout: Seconds = Field(default=3.0, description="Longest a connection may take.")
    overrides: dict[str, Any] = Field(default={}, description="Facts that differ from the provider file's.")

    model: str | None = Field(
        default=None, description="A model of `gateway local list`; the default one when left out."
    )
    model_path: Path | None = Field(default=None, description="A GGUF file of your own, in place of model.")
    context: int | None = Field(default=None, ge=64, description="Context window of one request, in tokens; 4096.")
    slots: int | None = Field(default=None, ge=1, le=256, description="Requests answered at the same time; 2.")
    threads: int | None = Field(default=None, ge=1, le=1024, description="CPU threads; the usable CPUs less one.")
    chat: bool | None = Field(default=None, description="Serve chat and text; by default if the model is for that.")
    embeddings: bool | None = Field(default=None, description="Serve embeddings; by default if the model is for that.")
    rerank: bool | None = Field(default=None, description="Serve rankings; by default if the model is for that.")
    pooling: Literal["mean", "cls", "last"] | None = Field(
        default=None, description="How embeddings are pooled; by default as the model's file says."
    )
    batch: int | None = Field(default=None, ge=1, le=65536, description="Prompt tokens computed in one go; 64.")
    batch_threads: int | None = Field(
        default=None, ge=1, le=1024, description="CPU threads that read prompts; as many as threads."
    )
    flash_attention: Literal["auto", "on", "off"] | None = Field(default=None, description="auto, on or off; auto.")
    kv_type: Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"] | None = Field(
        default=None, description="Format of the numbers in the context's memory; f16."
    )
    prompt_cache: Bytes | None = Field(default=None, description="Memory for prompts of earlier requests; 256MiB.")
    chat_template: Path | None = Field(default=None, description="A Jinja file in place of the model's own template.")
    lora: tuple[LoraSettings, ...] = Field(default=(), description="Adapters to load with the model.")
    command: tuple[str, ...] = Field(
        default=(), description="A server to run in place of the bundled one; {socket} or {port} is where it listens."
    )
    idle_unload: Seconds | None = Field(default=None, description="Unload the model after so long without a request.")
    memory_check: Literal["refuse", "warn", "off"] | None = Field(
        default=None, description="What to do about a model that does not fit into free memory; refuse."
    )
    queue: int | None = Field(default=None, ge=0, description="Most requests waiting for a slot; more get 503.")

    options: dict[str, bool | int | float | SecretStr] = Field(
        default={}, description="Arguments of each call of the library: api_version, aws_region_name, ..."
    )
    env: dict[str, SecretStr] = Field(default={}, description="Variables the library reads; its process has no others.")
    memory: Bytes | None = Field(default=None, description="Address space the library's process may take; 2GiB.")

    @property
    def local(self) -> bool:
        return self.type == LOCAL_TYPE

    @property
    def bridge(self) -> bool:
        return self.type == BRIDGE_TYPE

    def address(self, spec: ProviderSpec) -> str:
        """The base URL of the API, without a slash at its end; behind a socket the host is only a name."""
        if self.unix_socket is not None or self.local or self.bridge:
            return "http://localhost" + urlsplit(spec.transport.base_url or "http://localhost/v1").path.rstrip("/")
        return (self.base_url or spec.transport.base_url or "").rstrip("/")

    @property
    def keys(self) -> tuple[str, ...]:
        """The provider's keys in the clear, `api_key` first."""
        single = (self.api_key,) if self.api_key is not None else ()
        return tuple(key.get_secret_value() for key in (*single, *self.api_keys))


OF_BUNDLED_SERVER = (
    *("model_path", "threads", "batch_threads", "batch", "flash_attention", "kv_type", "prompt_cache"),
    *("chat_template", "pooling", "lora", "memory_check"),
)
"""Provider keys that tell the bundled server what a `command` has words of its own for."""

LOCAL_ONLY = (
    *OF_BUNDLED_SERVER,
    *("model", "context", "slots", "chat", "embeddings", "rerank", "queue", "command", "idle_unload"),
)
"""Provider keys that mean something to local engines alone."""

BRIDGE_ONLY = ("options", "env", "memory")
"""Provider keys that mean something to bridges alone."""

TLS_KEYS = ("ca_file", "client_cert", "client_key")
"""Provider keys that mean nothing where connections are not encrypted."""

NOT_OF_BRIDGES = ("unix_socket", *TLS_KEYS)
"""Provider keys about connections of our own, of which a bridge makes none."""

REMOTE_ONLY = ("base_url", "api_key", "api_keys", "unix_socket", *TLS_KEYS, "headers", "connect_timeout")
"""Provider keys that mean nothing to the bundled engine."""

FILE_KEYS = ("unix_socket", *TLS_KEYS, "model_path", "chat_template")
"""Provider keys that name a file; a relative one counts from the configuration's folder."""


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
