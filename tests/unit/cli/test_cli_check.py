"""`gateway check`: what would be served, and what comes of asking the targets."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import trustme
from typer.testing import CliRunner

from gateway.cli.main import command_app
from gateway.settings import ConfigError

KEY = "sk-quite-a-secret"


class _Handler(BaseHTTPRequestHandler):
    """Answers by the model that is asked for."""

    seen: ClassVar[list[tuple[str, str | None, dict[str, object]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append((self.path, self.headers["authorization"], body))
        status, answer = {
            "good": (200, b'{"choices": [{"message": {"content": "Hi"}}]}'),
            "refused": (401, f'{{"error": {{"message": "Incorrect key {KEY}"}}}}'.encode()),
            "missing": (404, b'{"message": "The model `missing` does not exist."}'),
            "empty": (200, b'{"choices": []}'),
            "html": (200, b"<html>proxy</html>"),
            "down": (503, b"upstream down"),
        }[str(body["model"])]
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def _serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    _Handler.seen.clear()
    yield from _serving()


def _check(tmp_path: Path, text: str, *arguments: str) -> tuple[int, str]:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(command_app("check"), ["-c", str(path), *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def _text(port: int, *models: str, scheme: str = "http", more: str = "") -> str:
    targets = ", ".join(f"{{provider: p, model: {model}}}" for model in models)
    provider = f"{{type: openai_compatible, base_url: '{scheme}://localhost:{port}/v1', api_key: {KEY}{more}}}"
    return f"providers: {{p: {provider}, local: {{type: local}}}}\nmodels: {{m: {{targets: [{targets}]}}}}\n"


def test_it_lists_what_would_be_served(tmp_path: Path) -> None:
    code, output = _check(tmp_path, _text(1, "a", "b") + "aliases: {x: m}\n")

    assert code == 0
    assert "c.yaml is right.\n  m  p/a, p/b\n  x  = m\n" in output


def test_as_json_it_is_for_programs(tmp_path: Path) -> None:
    code, output = _check(tmp_path, _text(1, "a"), "--json")

    assert code == 0
    assert json.loads(output)["models"] == {"m": ["p/a"]}


def test_as_json_a_wrong_configuration_lists_its_problems(tmp_path: Path) -> None:
    code, output = _check(tmp_path, _text(1, "a") + "alises: {}\n", "--json")

    assert code == 3
    (problem,) = json.loads(output)["problems"]
    assert (problem["line"], problem["column"], problem["path"]) == (3, 1, "alises")


def test_without_json_a_wrong_configuration_is_raised_for_the_entry_to_print(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        _check(tmp_path, "nope: 1\n")


def test_live_asks_each_target_for_one_token_with_its_key(tmp_path: Path, port: int) -> None:
    code, output = _check(tmp_path, _text(port, "good"), "--live")

    assert code == 0
    assert "OK    p/good  " in output
    assert _Handler.seen == [
        (
            "/v1/chat/completions",
            f"Bearer {KEY}",
            {"model": "good", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1},
        )
    ]


def test_live_reports_every_target_and_exits_with_4(tmp_path: Path, port: int) -> None:
    code, output = _check(tmp_path, _text(port, "good", "refused", "missing", "empty", "html", "down"), "--live")

    assert code == 4
    assert "OK    p/good" in output
    assert "FAIL  p/refused  HTTP 401: Incorrect key ***\n" in output
    assert "FAIL  p/missing  HTTP 404: The model `missing` does not exist.\n" in output
    assert "FAIL  p/empty  HTTP 200, but no answer in it" in output
    assert "FAIL  p/html  HTTP 200, but the answer is no JSON\n" in output
    assert "FAIL  p/down  HTTP 503: upstream down\n" in output
    assert KEY not in output


def test_live_says_when_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        code, output = _check(tmp_path, _text(unused.getsockname()[1], "good"), "--live")

    assert code == 4
    assert "FAIL  p/good  cannot be reached: " in output


def test_live_trusts_the_configured_certificates_and_no_others(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    for port in _serving(context):
        trusting = _check(
            tmp_path, _text(port, "good", scheme="https", more=f", ca_file: {tmp_path / 'ca.pem'}"), "--live"
        )
        wary = _check(tmp_path, _text(port, "good", scheme="https"), "--live")

    assert trusting[0] == 0
    assert wary[0] == 4
    assert "certificate verify failed" in wary[1]


def test_live_does_not_start_the_local_engine(tmp_path: Path) -> None:
    code, output = _check(
        tmp_path, "providers: {l: {type: local}}\nmodels: {m: {targets: [{provider: l}]}}\n", "--live"
    )

    assert code == 0
    assert "SKIP  l/smollm2-135m-instruct  starts with `gateway serve`" in output
