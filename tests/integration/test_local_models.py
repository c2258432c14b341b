"""Kinds of local models and their options, each in a real engine: vectors, rankings, adapters, formats, templates."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_engine import probe
from local_engine.engine import LocalEngine
from local_engine.errors import EngineCrashedError, EngineDownError
from local_engine.options import Adapter
from tests.fakes.gguf_files import write_decoder, write_encoder, write_lora

MakeEngine = Callable[..., LocalEngine]


@pytest.fixture
def decoder(tmp_path: Path) -> str:
    return str(write_decoder(tmp_path / "decoder.gguf"))


async def ready(engine: LocalEngine) -> LocalEngine:
    await engine.start()
    await engine.wait_ready(60)
    return engine


async def text(engine: LocalEngine, **more: Any) -> str:
    """What the model says to a fixed prompt; noise, but always the same."""
    body = {"prompt": "Hello", "max_tokens": 12, "temperature": 0, "cache_prompt": False, "ignore_eos": True}
    answer = await probe.ask(engine.address, "/v1/completions", body | more)
    said: str = answer["choices"][0]["text"]
    return said


async def vectors(engine: LocalEngine, *texts: str) -> list[list[float]]:
    answer = await probe.ask(engine.address, "/v1/embeddings", {"input": list(texts)})
    return [item["embedding"] for item in answer["data"]]


async def test_an_embedding_model_pools_as_its_file_says_unless_told_otherwise(
    start_engine: MakeEngine, tmp_path: Path
) -> None:
    by_pooling = {}
    for pooling in (None, "cls", "mean"):
        path = write_encoder(tmp_path / f"{pooling}.gguf", pooling=2)  # the first token's
        engine = await ready(start_engine(model=str(path), pooling=pooling))
        (by_pooling[pooling],) = await vectors(engine, "a b c")
        await engine.stop()

    assert by_pooling[None] == by_pooling["cls"]
    assert by_pooling["mean"] != by_pooling["cls"]


async def test_an_embedding_model_reads_inputs_up_to_its_context(start_engine: MakeEngine, tmp_path: Path) -> None:
    engine = await ready(start_engine(model=str(write_encoder(tmp_path / "e.gguf")), context=512, slots=2))

    short, long = await vectors(engine, "a", "b " * 500)

    assert len(short) == len(long) == 32
    assert short != long
    with pytest.raises(EngineCrashedError, match="too large to process"):
        await vectors(engine, "b " * 600)


async def test_a_ranking_model_ranks(start_engine: MakeEngine, tmp_path: Path) -> None:
    engine = await ready(start_engine(model=str(write_encoder(tmp_path / "r.gguf", ranks=True))))

    body = {"query": "a b", "documents": ["a b", "x y z", "q"]}
    answer = await probe.ask(engine.address, "/v1/rerank", body)

    assert sorted(result["index"] for result in answer["results"]) == [0, 1, 2]
    assert len({result["relevance_score"] for result in answer["results"]}) == 3


async def test_a_model_asked_for_what_it_is_not_made_for_says_which_option(
    start_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = start_engine(model=str(write_encoder(tmp_path / "e.gguf")), chat=True)
    await engine.start()

    with pytest.raises(EngineDownError, match="only reads"):
        await engine.wait_ready(60)


async def test_an_adapter_without_a_name_is_always_applied_at_its_scale(
    start_engine: MakeEngine, decoder: str, tmp_path: Path
) -> None:
    lora = write_lora(tmp_path / "lora.gguf")
    said = []
    for adapters in ((), (Adapter(lora),), (Adapter(lora, scale=0.1),)):
        engine = await ready(start_engine(model=decoder, adapters=adapters))
        said.append(await text(engine))
        await engine.stop()

    assert len(set(said)) == 3


async def test_an_adapter_with_a_name_is_applied_to_those_who_choose_it(
    start_engine: MakeEngine, decoder: str, tmp_path: Path
) -> None:
    loras = [Adapter(write_lora(tmp_path / f"{name}.gguf", spread=spread), name=name) for name, spread in
             (("mild", 0.5), ("wild", 2.0))]  # fmt: skip
    plain = await ready(start_engine(model=decoder))
    engine = await ready(start_engine(model=decoder, adapters=tuple(loras)))

    expected = await text(plain)
    said = [await text(engine, lora=[{"id": number, "scale": 1.0}]) for number in (0, 1)]

    assert await text(engine) == expected
    assert len({expected, *said}) == 3


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b"no adapter at all"), "is not a GGUF file"),
        (write_decoder, "is not a LoRA adapter"),
        (lambda path: write_lora(path, architecture="qwen3"), "models of the kind 'qwen3', not 'llama'"),
        (lambda path: write_lora(path, width=32), "could not serve"),
        (lambda path: None, "there is no adapter"),
    ],
    ids=["nonsense", "a model", "another kind", "another width", "missing"],
)
async def test_an_adapter_that_does_not_fit_fails_with_its_reason(
    start_engine: MakeEngine, decoder: str, tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    write(tmp_path / "lora.gguf")
    engine = start_engine(model=decoder, adapters=(Adapter(tmp_path / "lora.gguf"),))
    await engine.start()

    with pytest.raises(EngineDownError, match=message):
        await engine.wait_ready(60)


async def test_each_option_reaches_the_engine(start_engine: MakeEngine, decoder: str, tmp_path: Path) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools }}", encoding="utf-8")
    engine = await ready(
        start_engine(
            model=decoder,
            context=256,
            slots=3,
            threads=1,
            batch_threads=2,
            batch=32,
            flash_attention="on",
            kv_type="q8_0",
            chat_template=template,
        )
    )

    status, properties = await probe._call(engine.address, "GET", "/props")
    told = json.loads(properties)
    asked = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    counted = await probe.ask(engine.address, "/v1/chat/completions/input_tokens", asked)

    assert status == 200
    assert told["total_slots"] == 3
    assert told["default_generation_settings"]["n_ctx"] == 256
    assert told["chat_template"] == template.read_text()
    assert counted["input_tokens"] < 20, "the model's own template takes 25"
    assert await text(engine)


@pytest.mark.parametrize("kv_type", ["f32", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"])
async def test_every_format_of_the_context_generates(start_engine: MakeEngine, decoder: str, kv_type: str) -> None:
    engine = await ready(start_engine(model=decoder, kv_type=kv_type, context=256))

    assert await text(engine)
