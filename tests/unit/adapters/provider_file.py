"""A provider file that is right, and reading one of its name."""

from __future__ import annotations

from pathlib import Path

from adapters.registry import read_spec
from adapters.spec import ProviderSpec

GOOD = """\
schema: 1
id: acme
name: Acme
kind: hosted
as_of: 2026-11-30
transport:
  base_url: https://api.acme.example/v1
  auth: {header: Authorization, scheme: Bearer, env: ACME_API_KEY}
  unknown_body_fields: {support: rejected, status: 400}
endpoints:
  chat_completions: {path: /chat/completions, support: native}
messages:
  content_parts: {text: native, image_url: bytes}
  rules: [unique_tool_call_ids]
params:
  max_completion_tokens: {support: renamed, to: max_tokens, src: [docs]}
  n: {support: limited, max: 1, patch: fan_out, src: [transport]}
conflicts:
  - {when: [tools, "no_stream", "model~big"], result: 400, patch: two_phase}
finish_reason: {values: [stop, eos], nonstandard: {eos: stop}}
errors: {envelope: flat}
sources: {docs: chat completions reference}
"""


def read_acme(tmp_path: Path, text: str) -> ProviderSpec:
    """The provider of that file."""
    path = tmp_path / "acme.yaml"
    path.write_text(text, encoding="utf-8")
    return read_spec(path)
