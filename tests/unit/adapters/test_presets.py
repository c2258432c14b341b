"""Presets: each tool of the market guides is a type, says where it listens, and names what it was read in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters import located_yaml
from adapters.registry import PRESETS, load_spec, preset_types, provider_types, read_spec
from adapters.spec import FROM_TRANSPORT, Kind
from adapters.types import Operation
from adapters.vocabulary import EXTENSIONS, PARAMETERS, Verified
from gateway.settings import ConfigError, load_settings

WANTED = {
    "aiclient2api", "candle_vllm", "claude_code_local", "clawrouter", "colibri", "deepinfer", "docker_model_runner",
    "dreamserver", "exllamav2", "exo", "foundry_local", "gpt4all", "jan", "koboldcpp", "lemonade", "litellm_proxy",
    "llamafile", "lmdeploy", "lorax", "lucebox", "mlc_llm", "mlx_serve", "mlxcel", "msty", "nvidia_dynamo",
    "ollite_rt", "omlx", "openllm", "osaurus", "rapid_mlx", "run_anywhere", "shimmy", "swiftlm", "tabbyapi",
    "text_generation_webui", "turbofieldfare", "vllm_mlx", "ypipe",
}  # fmt: skip
DATED = re.compile(r"\((?:.*, )?(?:read|made) 20[0-9]{2}-[0-1][0-9]-[0-3][0-9]\)$")
ALIASES = {"tabbyapi"}
WITHOUT_CHAT = {"claude_code_local"}
EVERY = pytest.mark.parametrize("name", preset_types())


def _own(name: str) -> dict[str, Any]:
    """What the file itself says, without what it inherits."""
    raw = located_yaml.parse((PRESETS / f"{name}.yaml").read_text(encoding="utf-8"), name).value
    assert isinstance(raw, dict)
    return raw


def _lineage(name: str) -> list[str]:
    parents = []
    while (parent := load_spec(name).inherits) is not None:
        parents.append(parent)
        name = parent
    return parents


def test_every_tool_of_the_guides_is_there() -> None:
    assert set(preset_types()) == WANTED
    assert not WANTED & set(provider_types())


@EVERY
def test_a_preset_says_something_about_every_parameter(name: str) -> None:
    spec = read_spec(PRESETS / f"{name}.yaml")

    assert spec.kind is Kind.ENGINE
    assert spec.inherits is not None
    assert set(spec.params) >= PARAMETERS - EXTENSIONS
    assert spec.endpoints[Operation.CHAT].available is (name not in WITHOUT_CHAT)


@EVERY
def test_a_preset_has_an_address_with_a_port_or_tells_why_not(name: str) -> None:
    transport = load_spec(name).transport

    if transport.base_url is None:
        assert transport.note is not None
        assert transport.note.startswith("no address of its own: ")
    else:
        url = urlsplit(transport.base_url)
        assert (url.scheme, url.hostname) == ("http", "127.0.0.1")
        assert url.port is not None
        assert url.path.endswith("/v1")


@EVERY
def test_a_preset_states_how_well_it_is_known(name: str) -> None:
    spec, own = load_spec(name), _own(name)

    assert own["verified"] == spec.verified
    if spec.verified is Verified.ASSUMED:
        assert spec.note is not None
        assert spec.note.startswith("assumed: behaves like ")
    elif not own.get("params") and name not in ALIASES:
        assert spec.note, "what it says of requests is all inherited, and that has to be said"


@EVERY
def test_the_sources_of_a_preset_are_dated_and_its_own(name: str) -> None:
    own, inherited = _own(name).get("sources", {}), load_spec(_own(name)["inherits"]).sources

    assert all(DATED.search(source) for source in own.values()), own
    # A name that meant something else before would put words into another source's mouth.
    assert not set(own) & set(inherited)
    assert own or name in ALIASES


@EVERY
def test_every_source_of_a_preset_is_used(name: str) -> None:
    used: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            used.update(value.get("src", ()))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    own = _own(name)
    walk({key: value for key, value in own.items() if key != "sources"})

    assert used - {FROM_TRANSPORT} == set(own.get("sources", {}))


@EVERY
def test_a_preset_inherits_only_what_stands_among_the_providers(name: str) -> None:
    *presets, last = _lineage(name)

    assert set(presets) <= {"exllamav2", *provider_types()}
    assert last in provider_types()


@EVERY
def test_a_configuration_may_name_a_preset(tmp_path: Path, name: str) -> None:
    address = "" if load_spec(name).transport.base_url else ", base_url: 'http://127.0.0.1:9999/v1'"
    file = tmp_path / "config.yaml"
    file.write_text(
        f"providers: {{box: {{type: {name}{address}}}}}\nmodels: {{m: {{targets: [{{provider: box, model: x}}]}}}}\n",
        encoding="utf-8",
    )
    settings = load_settings(file, environ={})

    assert settings.providers["box"].type == name
    assert urlsplit(settings.providers["box"].address(load_spec(name))).port is not None


@pytest.mark.parametrize("name", sorted(name for name in WANTED if load_spec(name).transport.base_url is None))
def test_a_preset_without_an_address_asks_for_one(tmp_path: Path, name: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"providers: {{box: {{type: {name}}}}}\nexpose_provider_models: true\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="has no address of its own"):
        load_settings(file, environ={})


def test_a_misspelt_preset_is_answered_with_its_name() -> None:
    with pytest.raises(LookupError, match=r"Did you mean 'koboldcpp'\?"):
        load_spec("koboldcp")


def test_an_alias_says_the_same_under_its_own_name() -> None:
    alias, named = load_spec("tabbyapi"), load_spec("exllamav2")

    assert (alias.name, named.name) == ("TabbyAPI", "ExLlamaV2 (TabbyAPI)")
    assert alias.params == named.params
    assert alias.transport == named.transport


def test_a_note_about_one_tool_is_not_inherited_by_another(tmp_path: Path) -> None:
    child = tmp_path / "child.yaml"
    child.write_text(
        "schema: 1\nid: child\nname: Child\nkind: engine\nas_of: 2026-11-30\ninherits: parent\n", encoding="utf-8"
    )
    parent = tmp_path / "parent.yaml"
    parent.write_text(
        "schema: 1\nid: parent\nname: Parent\nkind: engine\nas_of: 2026-11-30\nverified: assumed\nnote: a guess\n"
        "inherits: vllm\n",
        encoding="utf-8",
    )
    spec = read_spec(child)

    assert spec.note is None
    assert spec.verified is Verified.DOCUMENTED
