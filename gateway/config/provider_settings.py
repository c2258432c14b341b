"""The keys of the configuration about one provider, and which of them mean something to which kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr

from adapters.spec import ProviderSpec
from gateway.config.section import Section
from gateway.config.units import Bytes, Seconds

LOCAL_TYPE = "local"
"""The provider type of the bundled engine."""

BRIDGE_TYPE = "litellm_bridge"
"""The provider type that is reached through the litellm library, in a process of its own."""

BRIDGE_MEMORY_BYTES = 2 * 1024**3
"""What that process may take when the file does not say."""

LOCAL_CONTEXT = 4096
LOCAL_SLOTS = 2
"""What the bundled engine takes when the file does not say."""


class LoraSettings(Section):
    """A LoRA adapter of a local model."""

    path: Path = Field(description="Its GGUF file.")
    scale: float = Field(default=1.0, gt=-100, lt=100, description="How strongly it is applied.")
    name: str = Field(default="", description="Apply it only to requests for this part of a model named 'something/*'.")


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
