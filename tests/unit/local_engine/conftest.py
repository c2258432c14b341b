"""A small model in a small wheel on a package index of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from local_engine import download, registry
from local_engine.registry import KnownModel
from tests.fakes.package_index import PackageIndex
from tests.fakes.tiny_model import CONTENT, MEMBER, WHEEL


@pytest.fixture
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """The one model that is known during the test."""
    model = KnownModel(
        name="tiny",
        file_name="tiny.gguf",
        size_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        requirement="tiny-model==1.0",
        wheel_name="tiny_model-1.0-py3-none-any.whl",
        wheel_sha256=hashlib.sha256(WHEEL).hexdigest(),
        member=MEMBER,
        license="CC0-1.0",
        context=128,
        about="nothing",
    )
    monkeypatch.setattr(registry, "_MODELS", (model,))
    return model


@pytest.fixture
def package_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """The only index that pip and uv know during the test."""
    with PackageIndex("tiny-model", "1.0", WHEEL) as index:
        for variable in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONSTRAINT", "PIP_NO_INDEX", "GATEWAY_OFFLINE"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        monkeypatch.setenv("UV_NO_CACHE", "1")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        monkeypatch.setattr(download, "_PAUSE_SECONDS", 0.01)
        yield index
