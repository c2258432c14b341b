"""llama.cpp's own server, with the bundled model, under the probe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.catalog import Catalog
from gateway.probe.battery import probe
from gateway.probe.finding import Verdict
from gateway.probe.wire import wire_to
from gateway.settings import load_settings
from local_engine.engine import LocalEngine
from local_engine.options import EngineConfig
from local_engine.pull import pull
from local_engine.registry import DEFAULT_MODEL, default_store

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CONTEXT = 512


async def test_its_file_still_holds(tmp_path: Path) -> None:
    pull(DEFAULT_MODEL, default_store())
    engine = LocalEngine(EngineConfig(model=DEFAULT_MODEL, context=CONTEXT, slots=2, cache_ram_mib=16))
    await engine.start()
    try:
        await engine.wait_ready(120)
        path = tmp_path / "config.yaml"
        provider = {"type": "llama_cpp_server", "unix_socket": str(engine.socket_path)}
        target = {"provider": "e", "model": "bundled", "context_window": CONTEXT}
        path.write_text(json.dumps({"providers": {"e": provider}, "models": {"m": {"targets": [target]}}}))
        settings = load_settings(path, environ={})
        catalog = Catalog.build(settings)
        model = catalog.models["m"]
        async with wire_to(settings, catalog, model, model.targets[0]) as wire:
            found = await probe(model.targets[0], wire.send)
    finally:
        await engine.stop()

    # The chat template of this model has no tools, which depends on the model and not on the file.
    differing = {one.fact: one.seen for one in found if one.verdict is Verdict.DIFFERS}
    assert differing == {"params.tools": "taken, without effect"}
    assert sum(one.verdict is Verdict.HOLDS for one in found) > 80
