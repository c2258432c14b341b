"""``/openapi.json`` tells every route, who may use it, what it takes and what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from gateway.data_plane.chat import _CHECKS as CHAT_CHECKS
from gateway.data_plane.completions import _CHECKS as COMPLETION_CHECKS
from gateway.data_plane.embeddings import _CHECKS as EMBEDDING_CHECKS
from gateway.http.app import SCOPES
from gateway.http.paths import GENERATION
from gateway.scopes import Scope
from tests.fakes.gateway import config, running_gateway
from tests.fakes.openai_answers import whole
from tests.fakes.scripted_server import ScriptedServer
from tests.unit.http.conftest import KEY


@pytest.fixture
async def description(client: httpx2.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get("/openapi.json")).json()
    return found


def operations(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in description["paths"].items():
        for operation in methods.values():
            yield path, operation


def validator(description: dict[str, Any], name: str) -> jsonschema_rs.Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
    return jsonschema_rs.validator_for(schema)


async def test_every_operation_states_its_scope_and_the_ways_to_show_a_key(description: dict[str, Any]) -> None:
    for path, operation in operations(description):
        keyed = operation["x-scope"] in ("key", "admin")
        assert operation["security"] == ([{"bearer": []}, {"x-api-key": []}, {"api-key": []}] if keyed else []), path


async def test_the_scopes_told_are_those_that_hold(description: dict[str, Any]) -> None:
    told = {path: operation["x-scope"] for path, operation in operations(description)}

    for path in GENERATION:
        assert told.pop("/v1" + path) == Scope.KEY
    assert told == {path: scope for path, scope in _described().items() if path in told}


def _described() -> dict[str, Scope]:
    return {path.replace(":path}", "}"): scope for path, scope in SCOPES.items()}


async def test_every_operation_tells_its_errors_in_the_shape_they_have(description: dict[str, Any]) -> None:
    for path, operation in operations(description):
        schemas = {
            status: answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            for status, answer in operation["responses"].items()
            if status in ("4XX", "5XX")
        }
        assert schemas == {"4XX": "Error", "5XX": "Error"}, path
        assert "422" not in operation["responses"], path


@pytest.mark.parametrize(
    ("name", "checks"),
    [
        ("ChatRequest", CHAT_CHECKS),
        ("CompletionRequest", COMPLETION_CHECKS),
        ("EmbeddingsRequest", EMBEDDING_CHECKS),
    ],
)
async def test_every_parameter_that_is_checked_is_described(
    description: dict[str, Any], name: str, checks: dict[str, Any]
) -> None:
    assert set(checks) - set(description["components"]["schemas"][name]["properties"]) == set()


async def test_nothing_is_promised_to_be_refused_that_passes(description: dict[str, Any]) -> None:
    """What the data plane leaves to the target is no business of the description."""
    body = {"model": "m", "prompt": "hi", "logit_bias": {"50256": None}, "mystery": [1]}

    validator(description, "CompletionRequest").validate(body)


async def test_streams_are_told_without_a_schema(description: dict[str, Any]) -> None:
    answer = description["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]

    assert answer["content"]["text/event-stream"] == {}


async def test_no_reference_leads_nowhere(description: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    schemas = {f"#/components/schemas/{name}" for name in description["components"]["schemas"]}
    used = set(references(description))

    assert used - schemas == set()
    assert schemas - used == set()


async def test_models_and_errors_are_as_described(client: httpx2.AsyncClient, description: dict[str, Any]) -> None:
    admin = {"authorization": "Bearer admin-key-0123456789"}
    for path, schema, headers in (
        ("/v1/models", "ModelList", {}),
        ("/v1/models", "ModelList", admin),
        ("/v1/models?client_version=1", "ModelList", {}),
        ("/v1/models/private/small", "Model", {}),
        ("/v1/models/none", "Error", {}),
        ("/admin/keys", "Error", {"authorization": f"Bearer {KEY}"}),
        ("/admin/keys", "KeyPage", admin),
        ("/health/live", "Alive", {}),
        ("/health/ready", "Health", {}),
    ):
        answer = await client.get(path, headers=headers)

        validator(description, schema).validate(answer.json())


@pytest.mark.parametrize("content", [5, {"found": 1}, [1.5], None, "text", ["text"]])
async def test_what_a_tool_has_found_may_be_anything(description: dict[str, Any], content: object) -> None:
    """It is sent on as JSON, so a request with it is sound; what people and models say is text or parts."""
    sound = validator(description, "ChatRequest").is_valid

    def asked(role: str) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": role, "content": content}]}

    assert sound(asked("tool"))
    assert sound(asked("function"))
    assert sound(asked("user")) == (content in (None, "text", ["text"]))


@pytest.mark.parametrize("member", ["name", "tool_call_id", "tool_calls"])
@pytest.mark.parametrize("value", [{}, 5, [], "text", None])
async def test_what_stands_around_a_message_is_for_its_target_to_take(
    description: dict[str, Any], member: str, value: object
) -> None:
    """The gateway sends it on whatever it is, so what it takes must not be called wrong by its description."""
    message = {"role": "user", "content": "Hi", member: value}
    async with ScriptedServer([whole()]) as server, running_gateway(config(server.port)) as gateway:
        answer = await gateway.chat(messages=[message])

    assert answer.status == 200
    assert validator(description, "ChatRequest").is_valid({"model": "m", "messages": [message]})
