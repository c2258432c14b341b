"""What is taken for a whole answer at one look is what the parser makes of it, and nothing else is taken."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.errors import ProviderError
from gateway.upstream.whole_answer import AnswerReader, WholeAnswer

LINES = (
    b"Content-Type: application/json",
    b"content-length: 2",
    b"Content-Length:2 ",
    b"Content-Length: 3",
    b"Content-Length: 02",
    b"content-length: +2",
    b"content-length: 2, 2",
    b"Content-Length : 2",
    b" folded: 1",
    b"x-request-id: abc",
    b"X-Request-Id: \tdef\t",
    b"empty:",
    b"no colon",
    b"bad\xff: 1",
    b"value: \xff",
    b"value: \x00",
    b"value: a\rb",
    b"value: a\nb",
    b"Transfer-Encoding: chunked",
    b"Connection: close",
    b"connection: keep-alive",
    b"Content-Encoding: gzip",
    b": nothing",
)
STARTS = (
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 429 Too Many Requests",
    b"HTTP/1.1 200 ",
    b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 100 Continue",
    b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1  200 OK",
    b"http/1.1 200 OK",
    b"HTTP/1.1 200\tOK",
    b"HTTP/1.1 2000 OK",
)


def whole_answer(data: bytes) -> WholeAnswer | None:
    return AnswerReader().read(data)


class Parsed:
    """An answer as the parser has it."""

    def __init__(self, data: bytes) -> None:
        self.headers: dict[str, str] = {}
        self.body = b""
        self.messages = 0
        self.keeps_alive = False
        self.parser = httptools.HttpResponseParser(self)
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.messages += 1
        self.keeps_alive = self.parser.should_keep_alive()


def _answer(start: bytes, lines: list[bytes], body: bytes, newline: bytes = b"\r\n") -> bytes:
    return newline.join([start, *lines]) + newline * 2 + body


USUAL = _answer(STARTS[0], [LINES[0], LINES[1], LINES[9]], b"{}")


def test_the_usual_answer_is_taken() -> None:
    answer = whole_answer(USUAL)

    assert answer is not None
    assert answer.status == 200
    assert answer.headers.get("content-type") == "application/json"
    assert answer.headers.get("x-none", "-") == "-"
    assert dict(answer.headers) == {"content-type": "application/json", "content-length": "2", "x-request-id": "abc"}
    assert len(answer.headers) == 3


@pytest.mark.parametrize("line", [b"Transfer-Encoding: chunked", b"Connection: close", b"Content-Encoding: gzip"])
def test_what_changes_how_a_body_is_read_is_left_to_the_parser(line: bytes) -> None:
    assert whole_answer(_answer(STARTS[0], [line, LINES[1]], b"{}")) is None


@pytest.mark.parametrize("cut", range(len(USUAL)))
def test_a_part_of_an_answer_is_none(cut: int) -> None:
    assert whole_answer(USUAL[:cut]) is None


def test_more_than_an_answer_is_none() -> None:
    assert whole_answer(USUAL + b"x") is None
    assert whole_answer(USUAL * 2) is None


def test_a_head_of_any_length_is_looked_at_in_bounded_time() -> None:
    assert whole_answer(_answer(STARTS[0], [b"a: " + b"b" * 20_000, LINES[1]], b"{}")) is None
    assert whole_answer(_answer(STARTS[0], [b"a: b"] * 150 + [LINES[1]], b"{}")) is None


@given(
    start=st.sampled_from(STARTS),
    lines=st.lists(st.one_of(st.sampled_from(LINES[:2]), st.sampled_from(LINES)), max_size=5),
    body=st.sampled_from((b"{}", b"", b"{}\n", b"HTTP/1.1 200 OK\r\n\r\n")),
    newline=st.sampled_from((b"\r\n", b"\r\n", b"\r\n", b"\n")),
)
def test_what_is_taken_is_what_the_parser_says(start: bytes, lines: list[bytes], body: bytes, newline: bytes) -> None:
    data = _answer(start, lines, body, newline)
    answer = whole_answer(data)
    if answer is None:
        return
    parsed = Parsed(data)
    assert parsed.messages == 1
    assert parsed.keeps_alive
    assert (answer.status, answer._body) == (parsed.parser.get_status_code(), parsed.body)
    for name, value in parsed.headers.items():
        assert whole_answer(data).headers.get(name) == value  # type: ignore[union-attr]  # it was one above
    assert dict(answer.headers) == parsed.headers


@given(
    heads=st.lists(st.sampled_from([LINES[:2], LINES[1:2], LINES[9:10] + LINES[1:2], LINES[3:4]]), max_size=6),
    sizes=st.lists(st.integers(0, 12), min_size=6, max_size=6),
    edit=st.tuples(st.integers(0, 200), st.sampled_from((b"", b"0", b"\r", b"-1", b"10"))),
)
def test_a_head_that_comes_again_is_read_as_the_first_time(
    heads: list[list[bytes]], sizes: list[int], edit: tuple[int, bytes]
) -> None:
    reader = AnswerReader()
    for lines, size in zip(heads, sizes, strict=False):
        length = b"content-length: %d" % size
        data = _answer(STARTS[0], [length if b"ength" in line else line for line in lines], b"x" * size)
        for sent in (data, data[: edit[0]] + edit[1] + data[edit[0] + 1 :]):
            read, alone = reader.read(sent), whole_answer(sent)
            assert (read is None) is (alone is None)
            if read is not None and alone is not None:
                assert (read.status, read._body) == (alone.status, alone._body)
                assert dict(read.headers) == dict(alone.headers)


def test_heads_that_differ_each_time_are_not_remembered_until_that_is_worth_trying() -> None:
    reader = AnswerReader()
    for number in range(50):
        assert reader.read(_answer(STARTS[0], [b"x-request-id: %d" % number, LINES[1]], b"{}")) is not None
    assert reader._known is None

    reader.try_again()

    assert reader.read(USUAL) is not None
    assert reader._known is not None


async def test_it_is_read_within_the_limit_only() -> None:
    answer = whole_answer(USUAL)
    assert answer is not None

    assert await answer.read(2) == b"{}"
    with pytest.raises(ProviderError, match="larger than 1 bytes"):
        await answer.read(1)


class Sink:
    """Keeps what it is told."""

    def __init__(self, close: bool) -> None:
        self.told: list[object] = []
        self.answer = whole_answer(USUAL)
        self.close = close
        assert self.answer is not None

    def feed(self, data: bytes) -> None:
        self.told.append(data)
        if self.close:
            assert self.answer is not None
            self.answer.close()

    def finish(self, error: ProviderError | None) -> None:
        self.told.append(error)


@pytest.mark.parametrize(("close", "told"), [(False, [b"{}", None]), (True, [b"{}"])])
def test_a_sink_gets_all_of_it_and_then_the_end_unless_it_closes(close: bool, told: list[object]) -> None:
    sink = Sink(close)
    assert sink.answer is not None

    sink.answer.stream(sink)

    assert sink.told == told
