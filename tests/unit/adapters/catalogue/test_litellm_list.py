"""LiteLLM's price file becomes records in exact integers, and what cannot be right stays out."""

from __future__ import annotations

from datetime import date

import pytest

from adapters.catalogue.litellm_prices import PriceListError
from adapters.catalogue.record import ModelKind
from adapters.spec import ModelStatus
from adapters.types import LongPrice, Price
from tests.unit.adapters.catalogue.price_lists import litellm_list, priced, read_first


def test_a_price_a_token_becomes_whole_pico_usd() -> None:
    data = litellm_list(groq__openai__m=priced(1.5e-07, 6e-07, cache_read_input_token_cost=7.5e-08))

    record = read_first(data)[0]["groq"]["openai/m"]

    assert record.price == Price(150_000, 600_000, 75_000)
    assert record.canonical == "m"


def test_what_longer_prompts_cost_is_read_for_the_usual_service_alone() -> None:
    entry = priced(
        5e-06,
        3e-05,
        cache_read_input_token_cost=5e-07,
        input_cost_per_token_above_272k_tokens=1e-05,
        output_cost_per_token_above_272k_tokens=4.5e-05,
        cache_read_input_token_cost_above_272k_tokens=1e-06,
        input_cost_per_token_above_272k_tokens_flex=5e-06,
        input_cost_per_token_above_500k_tokens=2e-05,
        cache_creation_input_token_cost_above_12hr=5e-07,
    )
    record = read_first(litellm_list(groq__m=entry))[0]["groq"]["m"]

    assert record.long == (
        LongPrice(272_000, 10_000_000, 45_000_000, 1_000_000),
        LongPrice(500_000, 20_000_000, 30_000_000),
    )
    assert not record.long_prompts_cost_more


def test_a_dearer_price_that_is_told_in_another_way_is_at_least_noted() -> None:
    entry = priced(5e-06, 3e-05, input_cost_per_token_above_long_context=1e-05)
    record = read_first(litellm_list(groq__m=entry))[0]["groq"]["m"]

    assert (record.long, record.long_prompts_cost_more) == ((), True)


@pytest.mark.parametrize(("usd", "ptoken"), [(3.7e-08, 37_000), (5e-11, 50), (0.003, 3_000_000_000)])
def test_no_digit_of_a_price_is_lost_to_binary_fractions(usd: float, ptoken: int) -> None:
    record = read_first(litellm_list(groq__m=priced(usd, usd)))[0]["groq"]["m"]

    assert (record.input_ptoken, record.output_ptoken) == (ptoken, ptoken)


def test_sound_is_priced_by_the_hour_and_counted_once() -> None:
    entry = {
        "litellm_provider": "groq",
        "mode": "audio_transcription",
        "input_cost_per_second": 3e-05,
        "output_cost_per_second": 3e-05,
    }
    record = read_first(litellm_list(groq__hear=entry))[0]["groq"]["hear"]

    assert record.kind is ModelKind.TRANSCRIPTION
    assert record.audio_phour == 108_000_000_000, "0.108 USD an hour"
    assert record.price is None


def test_speech_is_priced_by_the_character() -> None:
    entry = {"litellm_provider": "groq", "mode": "audio_speech", "input_cost_per_character": 2.2e-05}
    record = read_first(litellm_list(groq__say=entry))[0]["groq"]["say"]

    assert (record.kind, record.pcharacter) == (ModelKind.SPEECH, 22_000_000)


def test_a_model_with_an_end_is_deprecated_until_then_and_names_its_successor() -> None:
    entry = priced(1e-07, 1e-07, deprecation_date="2027-01-14", successor_model="groq/new")
    record = read_first(litellm_list(groq__old=entry))[0]["groq"]["old"]

    assert (record.status, record.retired_on) == (ModelStatus.DEPRECATED, date(2027, 1, 14))
    assert record.successor == "new"


def test_vectors_cost_nothing_to_put_out() -> None:
    entry = {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 2e-08}
    record = read_first(litellm_list(**{"text-embedding-x": entry}))[0]["openai"]["text-embedding-x"]

    assert record.price == Price(20_000, 0)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (priced(0.0, 0.0), "no price above 0"),
        (priced("free", 0.0), "no number"),
        (priced(-1e-07, 1e-07), "below 0"),
        (priced(0.15, 0.6), "slip of units"),
        (priced(True, 1e-07), "no number"),
    ],
)
def test_a_price_that_cannot_be_right_is_left_out_and_told(entry: dict[str, object], said: str) -> None:
    found, remarks = read_first(litellm_list(groq__m=entry))

    assert found.get("groq", {}) == {}
    assert len(remarks) == 1
    assert said in remarks[0]


def test_only_models_of_known_providers_under_names_they_know_are_taken() -> None:
    fireworks = {"litellm_provider": "fireworks_ai"}
    data = litellm_list(
        groq__m=priced(1e-07, 1e-07),
        elsewhere__m=priced(1e-07, 1e-07, litellm_provider="elsewhere"),
        groq__picture=priced(1e-07, 1e-07, mode="image_generation"),
        sample_spec={"litellm_provider": "one of them", "mode": "one of: chat"},
        **{
            "fireworks-ai-up-to-4b": priced(2e-07, 2e-07, **fireworks),
            "fireworks_ai/accounts/x/models/k": priced(3e-07, 3e-07, **fireworks),
            "fireworks_ai/k": priced(3e-07, 3e-07, **fireworks),
        },
    )

    found, _ = read_first(data)

    assert {name: list(models) for name, models in found.items()} == {
        "groq": ["m"],
        "fireworks": ["accounts/x/models/k"],
    }


@pytest.mark.parametrize("data", [b"", b"[1]", b"<html>", b'{"a": '])
def test_what_is_no_price_list_is_an_error(data: bytes) -> None:
    with pytest.raises(PriceListError):
        read_first(data)
