"""The example configuration loads, and leaves no key out."""

from __future__ import annotations

import re
import types
import typing

import pytest
from pydantic import BaseModel

from gateway.catalog import Catalog
from gateway.config.schema import NOT_IN_FILE, Settings
from gateway.package_data import data_path
from gateway.settings import load_settings

SHAPES = {"GROQ": "gsk_", "CEREBRAS": "csk-", "TOGETHER": "", "FIREWORKS": "fw_"}
KEYS = {f"{name}_API_KEY": f"{shape}a-key-of-{name.lower()}" for name, shape in SHAPES.items()}


def test_it_loads_with_an_empty_environment() -> None:
    settings = load_settings(data_path("config.example.yaml"), environ={})

    assert Catalog.build(settings).resolve("local") is not None
    assert "provider groq is disabled: its api_key is empty" in settings.notes


def test_it_loads_with_every_key_set() -> None:
    settings = load_settings(data_path("config.example.yaml"), environ=KEYS)

    assert settings.notes == ()
    assert len(settings.models["gpt-oss-120b"].targets) == 3


def _fields(model: type[BaseModel]) -> typing.Iterator[str]:
    for name, field in model.model_fields.items():
        if model is Settings and name in NOT_IN_FILE:
            continue
        yield name
        for inner in _models_in(field.annotation):
            yield from _fields(inner)


def _models_in(annotation: object) -> typing.Iterator[type[BaseModel]]:
    if (
        isinstance(annotation, type)
        and not isinstance(annotation, types.GenericAlias)
        and issubclass(annotation, BaseModel)
    ):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models_in(argument)


@pytest.mark.parametrize("key", sorted(set(_fields(Settings))))
def test_every_key_stands_in_it(key: str) -> None:
    text = data_path("config.example.yaml").read_text(encoding="utf-8")

    assert re.search(rf"(^|[\s{{#]){key}:", text, re.MULTILINE)


@pytest.mark.parametrize("section", ["server", "auth", "telemetry"])
def test_it_shows_the_defaults(section: str) -> None:
    settings = load_settings(data_path("config.example.yaml"), environ={})

    assert getattr(settings, section) == Settings.model_fields[section].default
