"""Without a file: the local engine, and the providers whose keys are in the environment."""

from __future__ import annotations

import pytest

from gateway.catalog import Catalog
from gateway.config.zero import hosted_types
from gateway.settings import ConfigError, load_settings, settings_from_environment


def test_an_empty_environment_gives_the_local_engine_under_both_names() -> None:
    settings = settings_from_environment({})
    catalog = Catalog.build(settings)

    assert list(settings.providers) == ["local"]
    model = catalog.resolve("local")
    assert model is not None
    assert model is catalog.resolve("smollm2-135m-instruct")
    assert model.targets[0].name == "local/smollm2-135m-instruct"
    assert model.first_event_seconds == 120.0


def test_a_key_brings_the_providers_production_models_by_canonical_and_by_own_name() -> None:
    catalog = Catalog.build(settings_from_environment({"GROQ_API_KEY": "gsk_x"}))

    canonical = catalog.resolve("gpt-oss-120b")
    own = catalog.resolve("groq/openai/gpt-oss-120b")
    assert canonical is not None
    assert own is not None
    assert [target.name for target in canonical.targets] == ["groq/openai/gpt-oss-120b"]
    assert own.targets[0].model == "openai/gpt-oss-120b"
    assert catalog.resolve("llama-3.3-70b") is None, "retired models are not offered"
    assert catalog.resolve("whisper-large-v3") is None, "neither are those that are not priced by the token"


def test_providers_of_the_same_model_are_targets_of_one_name() -> None:
    catalog = Catalog.build(
        settings_from_environment({"GROQ_API_KEY": "a", "CEREBRAS_API_KEY": "b", "TOGETHER_API_KEY": "c"})
    )
    model = catalog.resolve("gpt-oss-120b")

    assert model is not None
    assert sorted(target.provider for target in model.targets) == ["cerebras", "groq", "together"]


def test_the_notes_say_what_was_found_and_never_a_key() -> None:
    settings = settings_from_environment({"GROQ_API_KEY": "gsk_quite_secret"})
    text = "\n".join(settings.notes)

    assert "no configuration file" in text
    assert "groq: 3 models, with the key in GROQ_API_KEY" in text
    assert "not set: CEREBRAS_API_KEY, FIREWORKS_API_KEY, OPENAI_API_KEY, TOGETHER_API_KEY" in text
    assert "gsk_quite_secret" not in text


def test_environment_and_flags_still_apply() -> None:
    settings = load_settings(None, environ={"GATEWAY_SERVER__PORT": "1"}, flags={"server.workers": 2})

    assert (settings.server.port, settings.server.workers, settings.source) == (1, 2, "")


def test_all_hosted_providers_together_are_a_right_configuration() -> None:
    environ = {f"{name.upper()}_API_KEY": f"key-of-{name}" for name in hosted_types()}
    settings = settings_from_environment(environ)

    assert {provider.keys for name, provider in settings.providers.items() if name != "local"} == {
        (key,) for key in environ.values()
    }


def test_a_key_no_header_can_carry_is_told_by_its_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from_environment({"GROQ_API_KEY": "gsk_secret\n"})

    assert caught.value.render().startswith("GROQ_API_KEY  providers.groq.api_key\n  the key holds a line break")


@pytest.mark.parametrize(
    ("variable", "key", "told"),
    [
        ("GROQ_API_KEY", "sk-proj-0123456789", "groq: the key does not begin with 'gsk_' as keys of Groq"),
        ("CEREBRAS_API_KEY", "'csk-0123456789'", "cerebras: the key does not begin with 'csk-'"),
        ("OPENAI_API_KEY", "gsk_0123456789", "openai: the key does not begin with 'sk-'"),
        ("TOGETHER_API_KEY", "0123 456789", "together: the key holds a space"),
    ],
)
def test_a_key_of_another_shape_is_remarked_on_and_not_shown(variable: str, key: str, told: str) -> None:
    text = "\n".join(settings_from_environment({variable: key}).notes)

    assert told in text
    assert key not in text


@pytest.mark.parametrize("variable", ["GROQ_API_KEY", "CEREBRAS_API_KEY", "OPENAI_API_KEY", "TOGETHER_API_KEY"])
def test_a_key_of_the_right_shape_is_not_remarked_on(variable: str) -> None:
    shapes = {"GROQ_API_KEY": "gsk_x", "CEREBRAS_API_KEY": "csk-x", "OPENAI_API_KEY": "sk-x", "TOGETHER_API_KEY": "x"}

    assert "begin with" not in "\n".join(settings_from_environment({variable: shapes[variable]}).notes)


def test_an_empty_or_blank_variable_is_not_set() -> None:
    settings = settings_from_environment({"GROQ_API_KEY": "", "OPENAI_API_KEY": "  "})

    assert list(settings.providers) == ["local"]
    assert "GROQ_API_KEY, OPENAI_API_KEY" in settings.notes[-1]
