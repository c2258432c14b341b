"""The list of models: what each key sees, and what clients of all kinds find in an entry."""

from __future__ import annotations

from typing import Any, cast

import httpx2
import pytest

from gateway.services import Services

ADMIN = {"authorization": "Bearer admin-key-0123456789"}
NARROW = {"authorization": "Bearer sk-narrow-key-0123456789"}


async def test_the_list_has_what_openai_and_anthropic_clients_page_by(client: httpx2.AsyncClient) -> None:
    answer = (await client.get("/v1/models")).json()

    assert answer["object"] == "list"
    assert [entry["id"] for entry in answer["data"]] == ["chat", "private/small", "gpt-4o-mini"]
    assert (answer["has_more"], answer["first_id"], answer["last_id"]) == (False, "chat", "gpt-4o-mini")


async def test_an_entry_tells_what_holds_for_every_target(client: httpx2.AsyncClient) -> None:
    entry = (await client.get("/v1/models/chat")).json()

    assert entry["object"] == entry["type"] == "model"
    assert isinstance(entry["created"], int)
    assert entry["created_at"].endswith("Z")
    assert entry["owned_by"] == "fast"
    assert entry["context_length"] == 8192
    assert entry["max_output_tokens"] == 4096
    assert entry["pricing"] == {
        "prompt": "0.00000015",
        "completion": "0.0000006",
        "input_cache_read": "0.000000075",
    }
    # Groq refuses log probabilities, so the model cannot promise them although Cerebras has them.
    assert "temperature" in entry["supported_parameters"]
    assert "logprobs" not in entry["supported_parameters"]
    assert "gateway" not in entry


async def test_an_unknown_price_is_left_out(client: httpx2.AsyncClient) -> None:
    assert "pricing" not in (await client.get("/v1/models/private/small")).json()


@pytest.mark.parametrize("prefix", ["/v1", "", "/openai/v1"])
async def test_ids_with_slashes_answer_under_every_prefix(client: httpx2.AsyncClient, prefix: str) -> None:
    assert (await client.get(f"{prefix}/models")).status_code == 200
    for written in ("private/small", "private%2Fsmall"):
        answer = await client.get(f"{prefix}/models/{written}")
        assert answer.json()["id"] == "private/small"


async def test_an_alias_answers_under_its_own_name(client: httpx2.AsyncClient) -> None:
    entry = (await client.get("/v1/models/gpt-4o-mini")).json()

    assert entry["id"] == "gpt-4o-mini"
    assert entry["context_length"] == 8192


async def test_the_list_has_other_names_of_models_as_well(client: httpx2.AsyncClient) -> None:
    """maximhq/bifrost#3342, api7/aisix#897: clients offer and accept no other names than those in the list."""
    listed = {entry["id"]: entry for entry in (await client.get("/v1/models")).json()["data"]}

    assert listed["gpt-4o-mini"] == (await client.get("/v1/models/gpt-4o-mini")).json() | {
        "display_name": "gpt-4o-mini",
        "name": "gpt-4o-mini",
    }
    assert listed["gpt-4o-mini"]["context_length"] == listed["chat"]["context_length"]


async def test_a_key_sees_only_what_it_may_use(client: httpx2.AsyncClient) -> None:
    listed = (await client.get("/v1/models", headers=NARROW)).json()
    assert [entry["id"] for entry in listed["data"]] == ["private/small"]

    hidden = await client.get("/v1/models/chat", headers=NARROW)
    made_up = await client.get("/v1/models/chap", headers=NARROW)
    for answer in (hidden, made_up):
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "model_not_found"
    assert hidden.json()["error"]["message"].replace("chat", "chap") == made_up.json()["error"]["message"]


async def test_an_unknown_model_names_the_nearest_ids(client: httpx2.AsyncClient) -> None:
    error = (await client.get("/v1/models/private-small")).json()["error"]

    assert "private/small" in error["message"]
    assert error["type"] == "invalid_request_error"


async def test_the_operator_sees_the_targets(client: httpx2.AsyncClient) -> None:
    listed = (await client.get("/v1/models", headers=ADMIN)).json()
    one = (await client.get("/v1/models/chat", headers=ADMIN)).json()

    assert one["gateway"]["strategy"] == "priority"
    assert [target["provider"] for target in one["gateway"]["targets"]] == ["fast", "slow"]
    assert listed["data"][0] == one


async def test_the_operator_sees_which_targets_rest(client: httpx2.AsyncClient, services: Services) -> None:
    def health(answer: httpx2.Response) -> list[bool]:
        return [target["healthy"] for target in answer.json()["gateway"]["targets"]]

    before = await client.get("/v1/models/chat", headers=ADMIN)
    cast("Any", services.backends).resting.add(services.catalog.models["chat"].targets[1].name)
    after = await client.get("/v1/models/chat", headers=ADMIN)

    assert (health(before), health(after)) == ([True, True], [True, False])
    assert before.headers["etag"] != after.headers["etag"]


async def test_the_list_can_be_narrowed_to_parameters(client: httpx2.AsyncClient) -> None:
    both = (await client.get("/v1/models?supported_parameters=temperature")).json()
    one = (await client.get("/v1/models?supported_parameters=temperature,logprobs")).json()
    none = (await client.get("/v1/models?supported_parameters=teleport")).json()

    assert [len(answer["data"]) for answer in (both, one, none)] == [3, 1, 0]
    assert none["first_id"] is None


async def test_an_unchanged_list_is_not_sent_again(client: httpx2.AsyncClient) -> None:
    first = await client.get("/v1/models")
    again = await client.get("/v1/models", headers={"if-none-match": f'"other", {first.headers["etag"]}'})
    other_key = await client.get("/v1/models", headers={**NARROW, "if-none-match": first.headers["etag"]})

    assert first.headers["cache-control"] == "private, max-age=30"
    assert (again.status_code, again.content) == (304, b"")
    assert other_key.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer wrong-key-0123456789"},
        {"authorization": "Bearer sk-existing-key-012345678"},
    ],
)
async def test_without_a_good_key_there_is_no_list(client: httpx2.AsyncClient, headers: dict[str, str]) -> None:
    answer = await client.get("/v1/models", headers=headers)

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"


async def test_the_key_may_stand_in_x_api_key(client: httpx2.AsyncClient) -> None:
    headers = {"authorization": "", "x-api-key": "sk-existing-key-0123456789"}

    assert (await client.get("/v1/models", headers=headers)).status_code == 200
