"""Models whose template opens the tag of thinking: a lone closing tag parts the reasoning from the answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.gateway import running_gateway
from tests.fakes.openai_answers import good_stream, payloads
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.shapes import lacking, said

OFF = {"chat_template_kwargs": {"enable_thinking": False}}
OPENED = {"reasoning": {"think_tags": True, "opens_in_prompt": True, "off": OFF}, "extra_params": [*OFF]}


async def heard(text: str, pieces: list[str] | None = None, **members: Any) -> tuple[str, str]:
    """The answer and the reasoning that a client gets, streamed where *pieces* are given."""
    script = [said(text)] if pieces is None else good_stream(*pieces)
    async with ScriptedServer(script) as server, running_gateway(lacking(server, overrides=OPENED)) as gateway:
        got = await gateway.chat(stream=pieces is not None, **members)
    assert got.status == 200, got.body
    if pieces is None:
        message = got.json["choices"][0]["message"]
        return message["content"] or "", message.get("reasoning_content") or ""
    deltas = [one["choices"][0]["delta"] for one in payloads(got.body) if isinstance(one, dict) and one["choices"]]
    return (
        "".join(delta.get("content") or "" for delta in deltas),
        "".join(delta.get("reasoning_content") or "" for delta in deltas),
    )


@pytest.mark.parametrize("pieces", [None, ["Hm, ", "so</th", "ink>\n\nHi."]], ids=["whole", "streamed"])
async def test_a_lone_closing_tag_parts_the_reasoning_from_the_answer(pieces: list[str] | None) -> None:
    assert await heard("Hm, so</think>\n\nHi.", pieces) == ("Hi.", "Hm, so")


@pytest.mark.parametrize("pieces", [None, ["Hi", " there."]], ids=["whole", "streamed"])
@pytest.mark.parametrize("members", [{"reasoning_effort": "none"}, OFF], ids=["effort", "switch"])
async def test_who_has_switched_thinking_off_gets_an_answer(pieces: list[str] | None, members: dict[str, Any]) -> None:
    assert await heard("Hi there.", pieces, **members) == ("Hi there.", "")


async def test_another_value_of_the_switch_leaves_it_on() -> None:
    assert await heard("Hm.</think>Hi.", chat_template_kwargs={"enable_thinking": True}) == ("Hi.", "Hm.")
