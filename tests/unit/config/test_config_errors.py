"""How a wrong configuration is told: every problem, its place, what is allowed, the nearest match, and no secret."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.settings import ConfigError, load_settings


def _errors(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None, **flags: object) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(
            path, environ=environ or {}, flags={name.replace("__", "."): value for name, value in flags.items()}
        )
    return caught.value.render().replace(f"{tmp_path}/", "")


def test_the_report_reads_as_documented(tmp_path: Path) -> None:
    text = """\
version: 1
server: {port: 80800, prt: 1}
providers:
  groq: {type: groq, api_key: "${GROQ_API_KEY}"}
  gpu: {type: vlm, base_url: "http://gpu:8000/v1"}
models:
  m:
    targets:
      - {provider: grok, model: x}
    route:
      strategy: priorty
aliases: {a: mm}
"""
    assert (
        _errors(tmp_path, text)
        == """\
config.yaml:2:16  server.port
  found '80800'; at most 65535 is expected
config.yaml:2:23  server.prt
  'prt' is not a known key here. Did you mean 'port'?  (host, port, workers, request_timeout, stream_keepalive, \
max_body, drain_timeout, upstream_client, upstream_proxy, fetch_private_addresses)
config.yaml:4:31  providers.groq.api_key
  environment variable GROQ_API_KEY is not set. Export it, or write ${GROQ_API_KEY:-} to disable this provider.
config.yaml:5:15  providers.gpu.type
  'vlm' is not a provider type. Did you mean 'vllm'?
config.yaml:9:20  models.m.targets[0].provider
  'grok' is not a provider. Did you mean 'groq'?  (groq, gpu)
config.yaml:11:17  models.m.route.strategy
  'priorty' is not allowed here. Did you mean 'priority'?  (priority, weighted)
config.yaml:12:14  aliases.a
  the alias points to 'mm', which is not a model. Did you mean 'm'?
7 errors; nothing was started."""
    )


def test_one_error_is_counted_in_the_singular(tmp_path: Path) -> None:
    report = _errors(tmp_path, "version: 2\nexpose_provider_models: true\n")

    assert report == ("config.yaml:1:10  version\n  '2' is not allowed here.  (1)\n1 error; nothing was started.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1, 2]\n", "config.yaml:1:1\n  a mapping (key: value) is expected"),
        ("server: 3\n", "config.yaml:1:9  server\n  found '3'; a mapping (key: value) is expected"),
        ("server: {port: many}\n", "server.port\n  found 'many'; a whole number is expected"),
        ("server: {request_timeout: 30}\n", "'30' is not a duration. Did you mean '30s'?  (500ms, 30s, 5m, 2h, 90d)"),
        ("server: {max_body: 20megs}\n", "'20megs' is not a size.  (512KiB, 20MiB, 1GiB)"),
        ("telemetry: {metrics: maybe}\n", "found 'maybe'; true or false is expected"),
        ("models: {m: {}}\n", "config.yaml:1:13  models.m\n  the key 'targets' is missing"),
        ("models: {m: {targets: []}}\n", "found an empty list; at least 1 entry is expected"),
        ("models: {m: {targets: [{model: x}]}}\n", "1:24  models.m.targets[0]\n  the key 'provider' is missing"),
        ("models: {m: {targets: [{provider: 3, model: x}]}}\n", "text is expected; put a number or true/false in q"),
        ("a: 1\n  b: 2\n", "config.yaml:2:4\n  not readable as YAML"),
        ("notes: [x]\n", "config.yaml:1:1  notes\n  'notes' is not a known key here."),
        ("version: 1\n", "there are no models to serve"),
        ("", "there are no models to serve"),
    ],
)  # fmt: skip
def test_wrong_values_are_told_with_what_is_expected(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in _errors(tmp_path, text)


def test_a_fault_in_one_place_does_not_hide_those_in_others(tmp_path: Path) -> None:
    report = _errors(
        tmp_path,
        "server: {port: x}\n"
        "providers: {v: {type: vllm, connect_timeout: soon}}\n"
        "models: {m: {targets: [{provider: v, model: x, context_window: big}, {provider: w, model: x}]}}\n",
    )

    assert [line.split("  ")[1] for line in report.splitlines() if line.startswith("config.yaml")] == [
        "server.port",
        "providers.v.connect_timeout",
        "models.m.targets[0].context_window",
        "models.m.targets[1].provider",
    ]


def test_nothing_is_said_about_consequences_of_a_fault(tmp_path: Path) -> None:
    report = _errors(
        tmp_path,
        "providers: {v: {typ: vllm}}\nmodels: {m: {targets: [{provider: v, model: x}]}}\naliases: {a: m}\n",
    )

    assert report.count("config.yaml:") == 2, report
    assert "'typ' is not a known key here. Did you mean 'type'?" in report
    assert "the key 'type' is missing" in report


def test_a_file_that_cannot_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml\n  cannot be read: No such file or directory\. Correct"):
        load_settings(tmp_path / "absent.yaml", environ={})


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("aliases: {ä: b}".encode("latin-1"))

    with pytest.raises(ConfigError, match="no UTF-8 text"):
        load_settings(path, environ={})


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfexpose_provider_models: true\n")

    assert load_settings(path, environ={}).expose_provider_models


def test_no_secret_is_ever_in_a_report_or_a_repr(tmp_path: Path) -> None:
    secret = "gsk_kqzxvsecretvalue"  # long and unlike anything else
    text = f"""\
auth: {{admin_key: {{a: {secret}}}}}
storage: {{database_url: [{secret}]}}
providers:
  a: {{type: groq, api_key: [{secret}]}}
  b: {{type: groq, api_key: "{secret}\\n"}}
  c: {{type: groq, api_keys: {secret}, headers: {{x: [{secret}], "y z": {secret}}}}}
  d: {{type: vllm, base_url: "http://u:{secret}@h/"}}
"""
    report = _errors(tmp_path, text, {"GATEWAY_PROVIDERS__A__API_KEYS": secret, "GATEWAY_AUTH__ADMIN_KEY": secret[:9]})

    assert secret not in report
    assert secret[:9] not in report
    path = tmp_path / "good.yaml"
    path.write_text(
        f"providers: {{a: {{type: groq, api_key: {secret}}}}}\nexpose_provider_models: true\n", encoding="utf-8"
    )
    settings = load_settings(path, environ={"GATEWAY_DATABASE_URL": f"postgresql+asyncpg://u:{secret}@h/d"})
    assert secret not in repr(settings)
    assert secret not in str(settings.model_dump(mode="json"))
    assert settings.providers["a"].keys == (secret,)


def test_faults_in_a_long_list_keep_their_places(tmp_path: Path) -> None:
    entries = [f"{{provider: v, model: m{number}, weigh: 1}}" for number in range(12)]
    targets = "".join(f"      - {entry}\n" for entry in (*entries, "{model: x}", "3", "{provider: w, model: x}"))
    text = f"providers: {{v: {{type: vllm}}}}\nmodels:\n  m:\n    targets:\n{targets}"
    report = _errors(tmp_path, text)

    assert "config.yaml:17:9  models.m.targets[12]\n  the key 'provider' is missing" in report
    assert "config.yaml:18:9  models.m.targets[13]\n  found '3'; a mapping" in report
    assert "config.yaml:19:20  models.m.targets[14].provider\n  'w' is not a provider." in report
    assert report.endswith("15 errors; nothing was started.")


def test_a_section_with_nothing_in_it_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("server:\nmodels:\nexpose_provider_models: true\n", encoding="utf-8")

    assert load_settings(path, environ={}).server.port == 8080


def test_a_weight_that_counts_for_nothing_is_an_error(tmp_path: Path) -> None:
    provider = "providers: {gpu: {type: vllm, base_url: 'http://gpu/v1'}}\n"
    models = "models: {m: {targets: [{provider: gpu, model: x, weight: 2}]}}\n"

    assert "config.yaml:2:50  models.m.targets[0].weight\n  weights count for nothing" in _errors(
        tmp_path, provider + models
    )
