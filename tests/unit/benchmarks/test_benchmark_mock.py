"""What the mock upstream of the benchmark answers."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers import EVENTS
from benchmarks.bodies import Body, body
from benchmarks.workshop import make_certificates, running_mock

PATH = "/v1/chat/completions"


def ask(port: int, content: bytes) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", PATH, content)
    response = connection.getresponse()
    read = response.read()
    connection.close()
    return response, read


def events(port: int, model: str) -> list[dict[str, Any]]:
    """The events of a stream but for the last, which has to be [DONE]."""
    response, read = ask(port, body(Body.STREAM, model))
    assert response.getheader("content-type") == "text/event-stream"
    *told, done, nothing = read.decode().split("\n\n")
    assert (done, nothing) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in told]


@pytest.mark.parametrize("kind", [Body.SMALL, Body.LARGE])
def test_a_plain_request_gets_a_whole_answer(mock_port: int, kind: Body) -> None:
    response, read = ask(mock_port, body(kind, "mock-70b"))

    answer = json.loads(read)
    assert response.status == 200
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]


def test_a_request_with_tools_gets_a_call(mock_port: int) -> None:
    answer = json.loads(ask(mock_port, body(Body.TOOLS, "mock-70b"))[1])

    [call] = answer["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["most"] == 3
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


def test_a_stream_says_its_events_then_why_it_ended_then_usage(mock_port: int) -> None:
    *said, finish, usage = events(mock_port, "mock-70b")

    assert len(said) == EVENTS
    assert "".join(event["choices"][0]["delta"]["content"] for event in said).startswith("word word1 word2")
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == EVENTS


def test_a_model_asks_for_reasoning_under_another_name(mock_port: int) -> None:
    first, *_, last, _finish, _usage = events(mock_port, "reasoning")

    assert first["choices"][0]["delta"]["reasoning"] == "thought"
    assert last["choices"][0]["delta"] == {"content": "The answer."}


def test_a_model_asks_for_calls_without_indexes_whose_pieces_make_json(mock_port: int) -> None:
    *said, _finish, _usage = events(mock_port, "bare-calls")

    pieces = [event["choices"][0]["delta"]["tool_calls"][0] for event in said]
    assert not any("index" in piece for piece in pieces)
    assert json.loads("".join(piece["function"]["arguments"] for piece in pieces))


def test_a_gap_between_events_changes_when_they_come_and_not_what_they_are(mock_port: int) -> None:
    without, gapped = (ask(mock_port, body(Body.STREAM, "mock-70b", gap=gap))[1] for gap in (None, 500))

    assert without == gapped


def test_a_get_tells_the_models(mock_port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", mock_port, timeout=10)
    connection.request("GET", "/v1/models")

    assert json.load(connection.getresponse())["data"][0]["object"] == "model"
    connection.close()


def test_a_connection_is_kept_and_requests_may_come_in_pieces_or_together(mock_port: int) -> None:
    one = b"POST %b HTTP/1.1\r\nhost: mock\r\ncontent-length: 2\r\n\r\n{}" % PATH.encode()
    with socket.create_connection(("127.0.0.1", mock_port), timeout=10) as client:
        client.sendall(one[:40])
        client.sendall(one[40:] + one)

        seen = b""
        while seen.count(b'"usage"') < 2:
            seen += client.recv(65_536)

    assert seen.count(b"HTTP/1.1 200 OK") == 2


def test_a_chunked_request_is_read_to_its_end(mock_port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", mock_port, timeout=10)
    for _ in range(2):
        connection.request("POST", PATH, iter([b'{"model": "x", ', b'"tools": []}']), encode_chunked=True)

        assert json.load(connection.getresponse())["choices"][0]["finish_reason"] == "tool_calls"
    connection.close()


def test_over_tls_it_says_the_same_under_an_authority_of_its_own(
    workshop: Path, mock_port: int, tmp_path: Path
) -> None:
    certificate, key, ca_file = make_certificates(tmp_path)
    content = body(Body.STREAM, "mock-70b", gap=200)
    tls = ssl.create_default_context(cafile=str(ca_file))
    with running_mock(workshop / "mock", workshop, os.sched_getaffinity(0), str(certificate), str(key)) as port:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=tls)
        connection.request("POST", PATH, content)
        read = connection.getresponse().read()
        connection.close()

    assert read == ask(mock_port, content)[1]
