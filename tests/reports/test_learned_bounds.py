"""Reports about sampling that one server, or one model of it, takes within other bounds, or not under a name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.openai_answers import refusal
from tests.reports.field import USER, Json, Rule, in_front_of, strict


def _beyond(name: str, low: float, high: float, words: str) -> Rule:
    return lambda body: words if name in body and not low <= body[name] <= high else None


BOUNDS: list[Any] = [
    # What refuses the number, the number, and what is sent in its place.
    pytest.param(_beyond("temperature", 1, 1, "invalid temperature: only 1 is allowed for this model"), 0.3, None,
                 id="Kimi's models that think"),
    pytest.param(_beyond("top_p", 0.95, 0.95, "invalid top_p: only 0.95 is allowed for this model"), 0.5, None,
                 id="Kimi K2.5"),
    pytest.param(_beyond("temperature", 1, 1, "temperature must be 1 for this model"), 0.3, None, id="one for all"),
    pytest.param(_beyond("temperature", 0, 1, "temperature: must be between 0 and 1"), 1.5, 1, id="from, to"),
    pytest.param(_beyond("temperature", 0.01, 1, "temperature must be in (0.0, 1.0]"), 0, 0.001, id="open span"),
    pytest.param(_beyond("temperature", 0.001, 9, "`temperature` must be strictly positive"), 0, 0.001,
                 id="TGI's temperature"),
    pytest.param(_beyond("top_p", 0.001, 0.999, "`top_p` must be > 0.0 and < 1.0"), 1, 0.999,
                 id="TGI's top_p"),
    pytest.param(_beyond("temperature", 0, 1.5, "Invalid 'temperature': decimal above maximum value. Expected a value "
                         "<= 1.5, but got 2 instead."), 2, 1.5, id="OpenAI's own words"),
    pytest.param(_beyond("presence_penalty", -1, 1, "presence_penalty: Input should be less than or equal to 1"),
                 1.5, 1, id="pydantic"),
    pytest.param(_beyond("top_p", 1, 1, "top_p may only be set to 1"), 0.5, None, id="may only be"),
    pytest.param(_beyond("temperature", 0, 1, "temperature must not be greater than 1"), 1.5, 1, id="not greater"),
    pytest.param(_beyond("temperature", 0, 1, "temperature cannot exceed 1"), 1.5, 1, id="exceed"),
    pytest.param(_beyond("temperature", 0, 1, "temperature 1.5 is out of range. The maximum is 1."), 1.5, 1,
                 id="in another sentence"),
    pytest.param(_beyond("top_k", 1, 40, "top_k should be at most 40, got 100"), 100, 40, id="a whole number"),
]  # fmt: skip


def _name(rule: Rule) -> str:
    return next(name for name in ("temperature", "top_p", "presence_penalty", "top_k") if rule({name: 99}))


@pytest.mark.parametrize(("rule", "given", "sent"), BOUNDS)
async def test_a_number_is_brought_within_the_bounds_that_are_told(
    rule: Rule, given: float, sent: float | None
) -> None:
    name = _name(rule)

    def lenient(body: Json) -> str | None:
        return rule(body) if body.get(name) == given else None

    async with in_front_of(strict(lenient)) as field:
        answers = [await field.ask(**{name: given}) for _ in range(2)]

        assert [answer.status for answer in answers] == [200, 200], answers[0].body
        assert [body.get(name) for body in field.sent] == [given, sent, sent]
        became = "dropped" if sent is None else "clamped"
        assert all(f"{name}={became}" in answer.headers["x-gateway-adjusted"] for answer in answers)
        if sent is not None:
            assert type(field.sent[-1][name]) in (int, float)


async def test_numbers_are_not_touched_for_a_client_that_wants_none_changed() -> None:
    rule = _beyond("temperature", 0, 1, "temperature: must be between 0 and 1")
    async with in_front_of(strict(rule), unsupported="reject") as field:
        answer = await field.ask(temperature=1.5)

        assert (answer.status, len(field.sent)) == (400, 1)


NAMES: list[Any] = [
    pytest.param("data must NOT have additional properties: {}", "seed", id="ajv"),
    pytest.param("Unrecognized key(s) in object: '{}'", "seed", id="zod"),
    pytest.param('Unrecognized key: "{}"', "seed", id="zod 4"),
    pytest.param("Completions.create() got an unexpected keyword argument '{}'", "seed", id="Python"),
    pytest.param('Invalid JSON payload received. Unknown name "{}": Cannot find field.', "seed",
                 id="Google's words"),
    pytest.param("Parameter '{}' is not allowed", "seed", id="an allow list"),
    pytest.param("This model does not support '{}'", "seed", id="a model"),
    pytest.param("Argument not supported on this model: presencePenalty", "presence_penalty", id="xAI"),
    pytest.param("Argument not supported on this model: reasoningEffort", "reasoning_effort",
                 id="xAI's models that think by themselves"),
    pytest.param("{} is not enabled for this model", "reasoning_effort", id="Mistral"),
    pytest.param("The '{}' parameter is only allowed when 'store' is enabled.", "metadata",
                 id="metadata without store"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "name"), NAMES)
async def test_names_are_known_in_whatever_words_they_are_refused(words: str, name: str) -> None:
    value: Any = {"seed": 7, "metadata": {"a": "b"}, "reasoning_effort": "low"}.get(name, 0.5)
    async with in_front_of(strict(lambda body: words.format(name) if name in body else None)) as field:
        answers = [await field.ask(**{name: value}) for _ in range(2)]

        assert [answer.status for answer in answers] == [200, 200], answers[0].body
        assert [name in body for body in field.sent] == [True, False, False]


KEPT: list[Any] = [
    pytest.param({"user": "u"}, "Unexpected role 'user' after role 'user'", id="a role"),
    pytest.param({"seed": 1}, "Unknown tool: the seed of evil", id="a word"),
    pytest.param({"metadata": {"a": "b"}, "messages": [{**USER, "metadata": 1}]},
                 "messages.0.metadata: Extra inputs are not permitted", id="a member of messages"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "words"), KEPT)
async def test_what_only_has_the_name_of_a_parameter_is_not_taken_for_it(asked: Json, words: str) -> None:
    async with in_front_of([refusal(400, words)]) as field:
        await field.ask(**asked)

        assert all(next(iter(asked)) in body for body in field.sent)


async def test_what_is_switched_off_is_left_out_and_not_brought_up_to_the_least() -> None:
    """vLLM's words; one token to choose from would be the opposite of all of them."""

    def rule(body: Json) -> str | None:
        return "top_k must be 0 (disable), or at least 1, got -1." if body.get("top_k", 1) < 1 else None

    async with in_front_of(strict(rule)) as field:
        answers = [await field.ask(top_k=-1), await field.ask(top_k=-1), await field.ask(top_k=40)]

        assert [answer.status for answer in answers] == [200, 200, 200], answers[0].body
        assert [body.get("top_k") for body in field.sent] == [-1, None, None, 40]
        assert "top_k=dropped" in answers[1].headers["x-gateway-adjusted"]


async def test_a_bound_told_for_others_does_not_bring_up_what_is_switched_off() -> None:
    def rule(body: Json) -> str | None:
        return "top_k must be between 1 and 100" if body.get("top_k", 1) > 100 else None

    async with in_front_of(strict(rule)) as field:
        answers = [await field.ask(top_k=200), await field.ask(top_k=-1)]

        assert [answer.status for answer in answers] == [200, 200], answers[0].body
        assert [body.get("top_k") for body in field.sent] == [200, 100, -1]


@pytest.mark.parametrize(
    ("words", "such", "others"),
    [
        pytest.param("top_p must be 1 when using greedy sampling, got 0.9.", {"temperature": 0}, {"temperature": 1},
                     id="vLLM, greedy"),
        pytest.param("top_p must be 1 when thinking is enabled", {"reasoning_effort": "low"}, {}, id="thinking"),
    ],
)  # fmt: skip
async def test_what_holds_of_some_requests_is_learned_of_these_alone(words: str, such: Json, others: Json) -> None:
    def rule(body: Json) -> str | None:
        return words if body.get("top_p", 1) != 1 and such.items() <= body.items() else None

    async with in_front_of(strict(rule)) as field:
        answers = [await field.ask(top_p=0.9, **such), await field.ask(top_p=0.9, **others)]

        assert [answer.status for answer in answers] == [200, 200], answers[0].body
        assert [body.get("top_p") for body in field.sent] == [0.9, None, 0.9]


async def test_what_holds_under_a_condition_that_is_not_understood_is_passed_on() -> None:
    words = "top_p must be 1 when the moon is full"
    async with in_front_of(strict(lambda body: words if "top_p" in body else None)) as field:
        answer = await field.ask(top_p=0.9)

    assert answer.status == 400
    assert words in answer.json["error"]["message"]
