"""Names that point nowhere, files that are absent, keys that exclude or need each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.settings import ConfigError, load_settings

SERVED = "expose_provider_models: true\n"


def _report(tmp_path: Path, text: str) -> str:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ={})
    assert len(caught.value.problems) == 1, caught.value.render()
    return caught.value.render()


@pytest.mark.parametrize(
    ("provider", "place", "message"),
    [
        ("type: groq", "p", "answers nobody without one; write api_key: ${GROQ_API_KEY}"),
        ("type: groq, api_key: a, api_keys: [b]", "p.api_keys", "either 'api_key' or 'api_keys', not both"),
        ("type: groq, api_key: sk-...", "p.api_key", "the value stands in an example; use a key of your own"),
        ("type: groq, api_keys: [a, changeme]", "p.api_keys[1]", "the value stands in an example"),
        ('type: groq, api_key: "a\\n"', "p.api_key", "the key holds a line break"),
        ("type: openai_compatible", "p", "'base_url' is missing; a provider of type openai_compatible has no address"),
        ("type: vllm, base_url: h:80", "p.base_url", "'h:80' is not an http or https URL"),
        ("type: vllm, base_url: 'http://h:x'", "p.base_url", "'http://h:x' is not a URL"),
        ("type: vllm, base_url: 'http://u:p@h'", "p.base_url", "a URL must not hold a user or a password"),
        ("type: vllm, base_url: 'http://h/v1?a=b'", "p.base_url", "must not have a query or a fragment"),
        ("type: vllm, base_url: 'http://h', unix_socket: /s", "p.unix_socket", "either 'base_url' or 'unix_socket'"),
        ("type: vllm, ca_file: /nowhere.pem", "p.ca_file", "there is no file /nowhere.pem"),
        ("type: vllm, client_cert: /dev/null/x", "p.client_cert", "there is no file"),
        ("type: vllm, base_url: 'http://h/a b'", "p.base_url", "holds a space, or another character"),
        ("type: vllm, base_url: 'http://h/ä'", "p.base_url", "holds a space, or another character"),
        ("type: vllm, headers: {'a b': c}", "p.headers.a b", "not a header"),
        ("type: vllm, headers: {ä: c}", "p.headers.ä", "not a header"),
        ("type: vllm, headers: {Transfer-Encoding: chunked}", "p.headers.Transfer-Encoding", "is the gateway's own"),
        ("type: vllm, headers: {host: h}", "p.headers.host", "is the gateway's own"),
        ("type: vllm, slots: 2", "p.slots", "'slots' applies to 'type: local' only"),
        ("type: vllm, max_concurrency: 0", "p.max_concurrency", "found '0'; at least 1 is expected"),
        ("type: local, base_url: http://h", "p.base_url", "'base_url' does not apply to the local engine"),
        ("type: local, model: smollm2-135m", "p.model", "is not in the store; for a file, use model_path."),
        ("type: local, model: a, model_path: /dev/null", "p.model_path", "either 'model' or 'model_path', not both"),
        ("type: local, connect_timeout: 1s", "p.connect_timeout", "does not apply to the local engine"),
        ("type: vllm, overrides: {transport: {base_url: h}}", "p.overrides.transport.base_url", "write 'base_url' at"),
        ("type: vllm, overrides: {parms: {}}", "p.overrides.parms", "cannot be overridden. Did you mean 'params'?"),
        ("type: vllm, overrides: {params: {stp: {support: native}}}", "p.overrides.params.stp", "Did you mean 'stop'?"),
        ("type: vllm, overrides: {params: {stop: {support: nativ}}}", "p.overrides.params.stop.support", "'native'?"),
    ],
)  # fmt: skip
def test_a_wrong_provider_is_told(tmp_path: Path, provider: str, place: str, message: str) -> None:
    if "client_cert" in provider or "model_path" in provider:
        existing = tmp_path / "file"
        existing.write_text("x", encoding="utf-8")
        provider = provider.replace("/dev/null/x", "/nowhere").replace("/dev/null", str(existing))
        if "client_cert" in provider:
            provider += f", client_key: {existing}"
    report = _report(tmp_path, f"providers: {{p: {{{provider}}}}}\n{SERVED}")

    assert f"  providers.{place}\n" in report
    assert message in report


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("base_url: 'http://h'", "an address with http has no TLS"),
        ("unix_socket: /s", "a socket of this machine has no"),
    ],
)
def test_certificates_are_refused_where_nothing_is_encrypted(tmp_path: Path, address: str, reason: str) -> None:
    pem = tmp_path / "c.pem"
    pem.write_text("x", encoding="utf-8")
    keys = f"ca_file: {pem}, client_cert: {pem}, client_key: {pem}"
    path = tmp_path / "c.yaml"
    path.write_text(f"providers: {{p: {{type: vllm, {address}, {keys}}}}}\n{SERVED}", encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ={})

    told = {problem.path: problem.message for problem in caught.value.problems}
    assert list(told) == ["providers.p.ca_file", "providers.p.client_cert", "providers.p.client_key"]
    assert all(reason in message for message in told.values())


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    certificate = tmp_path / "c.pem"
    certificate.write_text("x", encoding="utf-8")

    provider = f"{{type: vllm, base_url: 'https://h', client_cert: {certificate}}}"
    report = _report(tmp_path, f"providers: {{p: {provider}}}\n{SERVED}")
    assert "'client_cert' and 'client_key' go together" in report


@pytest.mark.parametrize(
    ("target", "rest", "place", "message"),
    [
        ("provider: w, model: x", "", "targets[0].provider", "'w' is not a provider.  (v, local)"),
        ("provider: v", "", "targets[0]", "'model' is missing: what v calls the model"),
        ("provider: local, model: x", "", "targets[0].model", "a local provider serves one model"),
        ("provider: v, model: x}, {provider: v, model: x", "", "targets[1]", "v/x is a target of 'm' already"),
        ("provider: local}, {provider: local", "", "targets[1]", "local is a target of 'm' already"),
        ("provider: v, model: x, price: {input: -1, output: 1}", "", "targets[0].price.input", "at least 0"),
        ("provider: v, model: x", "retries: {attempts: 0}", "retries.attempts", "at least 1"),
        ("provider: v, model: x", "timeouts: {stall: 0s}", "timeouts.stall", "more than 0"),
        ("provider: v, model: x, overrides: {transport: {keep_alive: false}}", "",
         "targets[0].overrides.transport.keep_alive", "belongs to the provider's overrides"),
        ("provider: v, model: x, overrides: {params: {n: {support: no}}}", "", "targets[0].overrides.params.n.support",
         "'no' is not allowed"),
    ],
)  # fmt: skip
def test_a_wrong_model_is_told(tmp_path: Path, target: str, rest: str, place: str, message: str) -> None:
    providers = "providers: {v: {type: vllm}, local: {type: local}}"
    report = _report(tmp_path, f"{providers}\nmodels: {{m: {{targets: [{{{target}}}], {rest}}}}}\n")

    assert f"  models.m.{place}\n" in report
    assert message in report


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ("auth: {mode: open}\nserver: {host: 0.0.0.0}", "'open' would let anybody in who can reach 0.0.0.0"),
        ("auth: {mode: open}\nserver: {host: gateway.example}", "'open' would let anybody in"),
        ("server: {upstream_proxy: 'http://p:1'}", "only 'upstream_client: httpx' uses a proxy"),
        ("server: {upstream_proxy: 'p:s3cret@h', upstream_client: httpx}", "a proxy is written http://HOST:PORT"),
        ("auth: {admin_key: change-me}", "the value stands in an example; make a secret of your own"),
        ("auth: {admin_key: short}", "the key is shorter than 16 characters"),
        ("aliases: {a: m}", "the alias points to 'm', which is not a model."),
        ("aliases: {m: m}\nproviders: {l: {type: local}}\nmodels: {m: {targets: [{provider: l}]}}",
         "'m' is a model already; the alias would never be used"),
    ],
)  # fmt: skip
def test_what_is_wrong_elsewhere_is_told(tmp_path: Path, top: str, message: str) -> None:
    assert message in _report(tmp_path, f"{top}\n{SERVED}")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.0.1"])
def test_an_open_gateway_is_fine_on_a_loopback_host(tmp_path: Path, host: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"auth: {{mode: open}}\nserver: {{host: '{host}'}}\n{SERVED}", encoding="utf-8")

    assert load_settings(path, environ={}).auth.mode == "open"


def test_relative_paths_count_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"x")
    path = tmp_path / "c.yaml"
    path.write_text(f"providers: {{l: {{type: local, model_path: ./mine.gguf}}}}\n{SERVED}", encoding="utf-8")

    assert load_settings(path, environ={}).providers["l"].model_path == tmp_path / "mine.gguf"
