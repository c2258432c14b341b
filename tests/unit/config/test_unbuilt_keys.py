"""Keys of features that are not built yet are refused by name; values that mean "off" pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.unbuilt import MESSAGE
from gateway.settings import ConfigError, load_settings

BASE = "providers: {v: {type: vllm%s}}\nmodels: {m: {targets: [{provider: v, model: x%s}]%s}}\n"


def _text(provider: str = "", target: str = "", model: str = "", top: str = "") -> str:
    return BASE % (provider, target, model) + top


def _load(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    load_settings(path, environ={})


@pytest.mark.parametrize(
    ("text", "path", "mark"),
    [
        (_text(top="policies: {hedge: {enabled: true}}"), "policies", "policies:"),
        (_text(top="limits: {per_key: {rpm: 1}}"), "limits", "limits:"),
        (_text(top="errors: {budget_status: 402}"), "errors", "errors:"),
        (_text(top="ui: {enabled: true}"), "ui", "ui:"),
        (_text(top="auth: {mode: oidc}"), "auth.mode", "oidc"),
        (_text(top="auth: {oidc: {issuer: x}}"), "auth.oidc", "oidc:"),
        (_text(top="storage: {redis_url: redis://x}"), "storage.redis_url", "redis_url:"),
        (_text(top="storage: {log_bodies: errors}"), "storage.log_bodies", "log_bodies:"),
        (_text(top="storage: {retention: {requests: 30d}}"), "storage.retention", "retention:"),
        (_text(top="telemetry: {otlp_endpoint: http://x}"), "telemetry.otlp_endpoint", "otlp_endpoint:"),
        (_text(top="telemetry: {capture_content: true}"), "telemetry.capture_content", "capture_content:"),
        (_text(provider=", health: {interval: 10s}"), "providers.v.health", "health:"),
        (_text(model=", fallback: [m]"), "models.m.fallback", "fallback:"),
        (_text(model=", fallback_on: {content_filter: [m]}"), "models.m.fallback_on", "fallback_on:"),
        (_text(model=", shadow: {target: v/x}"), "models.m.shadow", "shadow:"),
        (_text(model=", route: {strategy: cheapest}"), "models.m.route.strategy", "cheapest"),
        (_text(model=", route: {require: {region: eu}}"), "models.m.route.require", "require:"),
        (_text(model=", route: {max_ttft: 2s}"), "models.m.route.max_ttft", "max_ttft:"),
        (_text(model=", route: {sticky: session}"), "models.m.route.sticky", "sticky:"),
        (_text(target=", limits: {rpm: 1}"), "models.m.targets[0].limits", "limits:"),
    ],
)
def test_a_key_that_is_not_built_yet_is_refused(tmp_path: Path, text: str, path: str, mark: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)

    report = caught.value.render()
    before = text[: text.rindex(mark)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert f"c.yaml:{line}:{column}  {path}\n" in report
    assert MESSAGE in report
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    "top",
    [
        "storage: {redis_url: '', log_bodies: never, retention: {}}",
        "telemetry: {otlp_endpoint: '${OTEL_EXPORTER_OTLP_ENDPOINT:-}', capture_content: false}",
        "limits: {}",
        "policies:",
    ],
)
def test_values_that_mean_off_pass(tmp_path: Path, top: str) -> None:
    _load(tmp_path, _text(top=top))
