"""From requests to calls of the library, and from what it raises to errors of OpenAI's shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.bridge.calling import FIELDS, NotCallableError, arguments
from gateway.bridge.orders import Orders
from gateway.bridge.telling import tell

CHAT = "/v1/chat/completions"
ORDERS = Orders(parent_pid=1, memory_bytes=1 << 30)
BODY: dict[str, Any] = {"model": "acme/m", "messages": []}


@pytest.mark.parametrize(
    "name",
    ["api_base", "base_url", "api_key", "custom_llm_provider", "extra_headers", "mock_response", "fallbacks",
     "metadata", "timeout", "max_retries", "aws_secret_access_key", "model_list", "num_retries", "drop_params"],
)  # fmt: skip
@pytest.mark.parametrize("path", list(FIELDS))
def test_nothing_that_steers_the_library_comes_from_a_client(path: str, name: str) -> None:
    with pytest.raises(NotCallableError) as refused:
        arguments(path, {"model": "m", name: "x"}, ORDERS, "key")

    assert refused.value.param == name


def test_what_the_operator_says_is_added_to_what_the_client_asks() -> None:
    orders = Orders(1, 1, "https://acme.example", {"api_version": "7", "temperature": 0}, {"x-team": "red"})

    call = arguments(CHAT, {**BODY, "temperature": 1, "seed": None}, orders, "sk-key")

    assert call == {
        **BODY, "temperature": 1, "max_retries": 0, "api_version": "7", "api_base": "https://acme.example",
        "extra_headers": {"x-team": "red"}, "api_key": "sk-key",
    }  # fmt: skip


@pytest.mark.parametrize("body", [None, [], "x", {}, {"model": 1}])
def test_a_body_no_call_can_be_made_of_is_a_400(body: Any) -> None:
    with pytest.raises(NotCallableError) as refused:
        arguments(CHAT, body, ORDERS, "")

    assert tell(refused.value).status == 400


class RaisedError(Exception):
    def __init__(self, message: str, status: Any = None, **more: Any) -> None:
        self.message = message
        if status is not None:
            self.status_code = status
        self.__dict__.update(more)


class BadRequestError(RaisedError):
    pass


class ContextWindowExceededError(BadRequestError):
    pass


class RateLimitError(RaisedError):
    pass


def test_the_status_and_the_code_are_kept_and_the_librarys_own_names_are_not() -> None:
    raised = ContextWindowExceededError("litellm.ContextWindowExceededError: litellm.BadRequestError: too long", 400)

    told = tell(raised)

    assert told.status == 400
    assert told.body["error"] == {
        "message": "too long", "type": "invalid_request_error", "param": None, "code": "context_length_exceeded",
    }  # fmt: skip


def test_a_time_to_wait_is_passed_on() -> None:
    class Response:
        headers = {"retry-after": "3", "server": "acme"}  # noqa: RUF012 - as the library's errors have it

    assert tell(RateLimitError("slow down", 429, response=Response)).headers == {"retry-after": "3"}


@pytest.mark.parametrize("status", [None, 200, "x", 700])
def test_an_error_without_a_status_is_a_500(status: Any) -> None:
    assert tell(RaisedError("odd", status)).status == 500


def test_orders_survive_their_way_and_show_no_secret() -> None:
    orders = Orders(1, 2, "u", {"azure_ad_token": "s3cret"}, {"x": "s3cret"}, {"K": "s3cret"})

    assert Orders.from_json(orders.to_json()) == orders
    assert "s3cret" not in repr(orders)
    assert json.loads(orders.to_json())["environ"] == {"K": "s3cret"}
