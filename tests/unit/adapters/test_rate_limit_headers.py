"""What providers tell of their limits, in every format they tell it in."""

from __future__ import annotations

import email.utils
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.rate_limits import (
    MAX_RETRY_AFTER_SECONDS,
    Limit,
    RateLimitReader,
    RateLimits,
    parse_reset,
    parse_retry_after,
    wait_in_words,
)
from adapters.registry import load_spec
from adapters.vocabulary import ResetFormat


def read(provider: str, **headers: str) -> RateLimits | None:
    reader = RateLimitReader(load_spec(provider).rate_limit_headers)
    return reader.read({name.replace("_", "-"): value for name, value in headers.items()})


def test_groq_tells_requests_by_the_day_and_tokens_by_the_minute_in_go_durations() -> None:
    limits = read(
        "groq",
        x_ratelimit_limit_requests="14400",
        x_ratelimit_remaining_requests="14370",
        x_ratelimit_reset_requests="2m59.56s",
        x_ratelimit_limit_tokens="18000",
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_tokens="7.66s",
    )

    assert limits is not None
    assert limits.limits == (
        Limit("requests_day", 14400.0, 14370.0, 179.56),
        Limit("tokens_minute", 18000.0, 0.0, 7.66),
    )
    assert limits.wait_seconds() == 7.66


def test_cerebras_tells_float_seconds_under_the_names_of_windows() -> None:
    limits = read(
        "cerebras",
        x_ratelimit_remaining_requests_day="0",
        x_ratelimit_reset_requests_day="33011.382867097855",
        x_ratelimit_remaining_tokens_minute="5",
        x_ratelimit_reset_tokens_minute="11.382867097854614",
    )

    assert limits is not None
    assert [limit.kind for limit in limits.limits] == ["requests_day", "tokens_minute"]
    assert limits.limits[1].reset_seconds == pytest.approx(11.383, abs=0.001)
    assert limits.wait_seconds() == MAX_RETRY_AFTER_SECONDS


def test_together_has_names_of_its_own_and_suggests_a_wait() -> None:
    limits = read("together", x_ratelimit_limit="10", x_ratelimit_reset="3", x_tokenlimit_remaining="700")

    assert limits is not None
    assert limits.limits == (Limit("requests", 10.0, None, 3.0), Limit("tokens", None, 700.0, None))
    assert limits.wait_seconds() == 3.0


def test_fireworks_tells_tokens_a_second_and_no_reset() -> None:
    limits = read("fireworks", x_ratelimit_limit_tokens_prompt="60000", x_ratelimit_over_limit="yes")

    assert limits == RateLimits((Limit("prompt_tokens_second", 60000.0, None, None),))
    assert limits.wait_seconds() is None


def test_openais_names_are_read_of_any_compatible_server() -> None:
    limits = read("openai_compatible", x_ratelimit_remaining_requests="59", x_ratelimit_reset_requests="1s")

    assert limits == RateLimits((Limit("requests", None, 59.0, 1.0),))
    assert limits.wait_seconds() is None, "nothing is used up"


def test_an_answer_without_such_headers_tells_nothing() -> None:
    assert read("groq", content_type="application/json") is None
    assert not RateLimitReader(load_spec("vllm").rate_limit_headers)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2m59.56s", 179.56), ("7.66s", 7.66), ("1h0m0s", 3600.0), ("120ms", 0.12), ("6m0s", 360.0), ("0s", 0.0),
        ("1d", 86400.0), ("33011.38", 33011.38), ("0", 0.0), ("12", 12.0), (" 12 ", 12.0), ("500µs", 0.0005),
        ("", None), ("soon", None), ("-1", None), ("-2m", None), ("nan", None), ("inf", None), ("1e9", None),
        ("2m59", None), ("s", None), ("1m 2s", None), ("9" * 40, None), ("99999h", None), ("٣s", None),
        ("2001-01-01T00:00:00Z", 0.0), ("Thu, 01 Jan 2015 00:00:00 GMT", 0.0), ("1420070400", 0.0),
        ("1420070400000", 0.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [None, *ResetFormat])
def test_a_reset_is_understood_whatever_the_file_says_of_its_format(
    text: str, seconds: float | None, form: ResetFormat | None
) -> None:
    assert parse_reset(text, form) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_reset_in_the_future_counts_from_now() -> None:
    in_a_minute = parse_reset(str(int((time.time() + 60) * 1000)))

    assert in_a_minute is not None
    assert 50 < in_a_minute <= 60


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "1m2s"}, 62.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "99999"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after-ms": "99999999"}, MAX_RETRY_AFTER_SECONDS),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 99 Foo 2026 25:61:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_RETRY_AFTER_SECONDS),
    ],
)
def test_the_time_to_come_back_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_a_date_to_come_back_is_counted_from_now() -> None:
    seconds = parse_retry_after({"retry-after": email.utils.formatdate(time.time() + 60, usegmt=True)})

    assert seconds is not None
    assert 50 < seconds <= 60


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Limit 8000, Used 7000. Please try again in 9m38.016s. Need more tokens?", MAX_RETRY_AFTER_SECONDS),
        ("Please try again in 7.5s.", 7.5),
        ("Rate limit reached. Please try again in 6ms.", 0.006),
        ("Please retry after 26 seconds.", 26.0),
        ("Try again in 250 milliseconds", 0.25),
        ("try again in a while", None),
        ("try again in 1.2.3s", None),
        ("it took 5s", None),
    ],
)
def test_the_time_to_come_back_is_read_out_of_the_words(message: str, seconds: float | None) -> None:
    assert wait_in_words(message) == seconds


NONSENSE = st.text(max_size=40) | st.from_regex(r"-?[0-9]{0,30}(\.[0-9]{0,30})?(e[0-9]+)?(ms|s|m|h)?", fullmatch=True)


@given(NONSENSE, NONSENSE, NONSENSE)
@settings(max_examples=400, deadline=None)
def test_no_header_makes_it_fail_or_promise_nonsense(limit: str, remaining: str, reset: str) -> None:
    seconds = parse_retry_after({"retry-after": limit, "retry-after-ms": reset})
    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_SECONDS
    assert (wait_in_words(f"try again in {reset}") or 0.0) <= MAX_RETRY_AFTER_SECONDS

    limits = read(
        "groq", x_ratelimit_limit_tokens=limit, x_ratelimit_remaining_tokens=remaining, x_ratelimit_reset_tokens=reset
    )
    assert limits is not None
    told = limits.limits[0]
    assert all(value is None or 0 <= value < 1e16 for value in (told.limit, told.remaining, told.reset_seconds))
    wait = limits.wait_seconds()
    assert wait is None or 0 <= wait <= MAX_RETRY_AFTER_SECONDS
