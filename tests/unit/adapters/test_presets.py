"""Presets: each tool of the market guides is a type, says where it listens, and names what it was read in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from adapters import located_yaml
from adapters.adapter import Adapter, Prepared
from adapters.errors import ProviderError
from adapters.registry import PRESETS, load_spec, preset_types, provider_types, read_spec
from adapters.spec import FROM_TRANSPORT, Kind, ProviderSpec
from adapters.target import Target
from adapters.types import FailureKind, Operation
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


def _prepare(name: str, stream: bool = False, **body: Any) -> Prepared:
    spec: ProviderSpec = load_spec(name)
    adapter = Adapter(Target("box/m", "box", "m", spec))
    request = {"model": "alias", "messages": [{"role": "user", "content": "hi"}], **body}
    encoded = {key: msgspec.Raw(json.dumps(value).encode()) for key, value in request.items()}
    if stream:
        encoded["stream"] = msgspec.Raw(b"true")
    return adapter.prepare(encoded, Operation.CHAT, stream)


def _sent(prepared: Prepared) -> dict[str, Any]:
    assert prepared.shape is None
    return dict(json.loads(prepared.body))


RENAMES = sorted(name for name in WANTED if load_spec(name).params["max_completion_tokens"].to == "max_tokens")


@pytest.mark.parametrize("name", RENAMES)
def test_the_newer_limit_reaches_servers_that_know_the_older_one(name: str) -> None:
    sent = _sent(_prepare(name, max_completion_tokens=7))

    assert sent["max_tokens"] == 7
    assert "max_completion_tokens" not in sent


LISTS = sorted(name for name in WANTED if load_spec(name).params["stop"].form is not None)


@pytest.mark.parametrize("name", LISTS)
def test_one_stop_becomes_a_list_where_only_lists_are_known(name: str) -> None:
    assert _sent(_prepare(name, stop="END"))["stop"] == ["END"]


@pytest.mark.parametrize("name", ["exo", "omlx", "shimmy", "swiftlm", "vllm_mlx", "rapid_mlx", "colibri", "lorax"])
def test_several_choices_are_made_one_by_one_where_there_is_but_one(name: str) -> None:
    assert _prepare(name, n=2).shape is not None
    assert "n" not in _sent(_prepare(name)) or _sent(_prepare(name))["n"] == 1


@pytest.mark.parametrize("name", ["gpt4all", "shimmy", "run_anywhere", "koboldcpp"])
def test_tools_are_emulated_where_there_are_none(name: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}

    assert _prepare(name, tools=[tool]).shape is not None


@pytest.mark.parametrize("name", ["omlx", "swiftlm", "exo", "gpt4all", "shimmy"])
def test_a_bias_that_would_be_lost_is_refused_by_name(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        _prepare(name, logit_bias={"5": 1})

    assert caught.value.kind is FailureKind.UNSUPPORTED_PARAMETER
    assert caught.value.param == "logit_bias"


def test_a_server_without_streams_is_asked_for_a_whole_answer() -> None:
    assert _prepare("gpt4all", stream=True).shape is not None


def test_a_strict_server_gets_what_it_knows_and_nothing_else() -> None:
    sent = _sent(_prepare("gpt4all", user="u", store=True, seed=1, temperature=0.5))

    assert sent["temperature"] == 0.5
    assert not {"store", "seed"} & set(sent)
    assert sent["max_tokens"] > 16, "its own limit would end every answer after a sentence"


def test_stops_that_a_server_ignores_are_watched_for() -> None:
    prepared = _prepare("run_anywhere", stop=["END"])

    assert "stop" not in _sent(prepared)
    assert prepared.needs is not None
    assert prepared.needs.stops == ("END",)


@EVERY
def test_a_plain_request_goes_as_it_is(name: str) -> None:
    prepared, spec = _prepare(name), load_spec(name)
    sent = _sent(prepared)

    assert {key: sent.pop(key) for key in ("model", "messages")} == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
    }
    assert set(sent) <= {*spec.defaults, "max_tokens"}
    assert {change.param for change in prepared.adjustments} <= {"max_tokens"}


@pytest.mark.parametrize("name", ["gpt4all", "run_anywhere", "mlc_llm"])
def test_parts_of_text_become_one_text_where_lists_are_refused(name: str) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    assert _sent(_prepare(name, messages=[{"role": "user", "content": parts}]))["messages"][0]["content"] == "a\nb"


@pytest.mark.parametrize("name", ["gpt4all", "exo", "mlxcel", "vllm_mlx", "mlc_llm", "koboldcpp"])
def test_the_developer_speaks_as_the_system_where_that_role_is_not_known(name: str) -> None:
    messages = [{"role": "developer", "content": "d"}, {"role": "user", "content": "hi"}]

    assert _sent(_prepare(name, messages=messages))["messages"][0]["role"] == "system"


IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://192.0.2.1/a.png"}}]}


@pytest.mark.parametrize("name", ["koboldcpp", "ollite_rt"])
def test_images_at_an_address_are_fetched_for_servers_that_want_bytes(name: str) -> None:
    assert type(_prepare(name, messages=[IMAGE]).shape).__name__ == "FetchImages"


@pytest.mark.parametrize("name", ["turbofieldfare", "shimmy", "run_anywhere", "gpt4all", "lucebox"])
def test_images_are_refused_where_there_is_text_alone(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        _prepare(name, messages=[IMAGE])

    assert caught.value.kind is FailureKind.UNSUPPORTED_PARAMETER


@pytest.mark.parametrize(
    ("name", "status", "body"),
    [
        ("exllamav2", 400, {"error": {"message": "Prompt length 9 exceeds the available context size of 8 tokens"}}),
        ("lmdeploy", 400, {"object": "error", "message": "The request exceeds the model context length.", "code": 400}),
        ("candle_vllm", 422, {"message": "Prompt too long."}),
        ("lucebox", 400, {"error": {"message": "This model's maximum context length is 8 tokens."}}),
        ("turbofieldfare", 400, {"error": {"message": "effective prompt exceeds the configured context"}}),
        ("colibri", 400, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_in_each_wording(name: str, status: int, body: dict[str, Any]) -> None:
    adapter = Adapter(Target("box/m", "box", "m", load_spec(name)))

    assert adapter.refusal(status, {}, json.dumps(body).encode()).kind is FailureKind.CONTEXT_LENGTH
