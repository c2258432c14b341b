"""What the tests of reloads share: files to write, and how to ask for a reload."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.gateway import RunningGateway, config
from tests.fakes.raw_client import Answer
from tests.fakes.scripted_server import ScriptedServer

ADMIN_KEY = "admin-key-0123456789"
RELOAD_OK = "gateway_config_reload_ok"


def settings(*servers: ScriptedServer | int, **sections: Any) -> dict[str, Any]:
    """One model ``m`` with a target at each of *servers*, and an admin key."""
    return {**config(*servers), "auth": {"admin_key": ADMIN_KEY}, **sections}


def write(gateway: RunningGateway, content: dict[str, Any] | str) -> None:
    gateway.file.write_text(content if isinstance(content, str) else json.dumps(content))


async def reload(gateway: RunningGateway, query: str = "", *, key: str = ADMIN_KEY) -> Answer:
    return await gateway.post("/admin/reload" + query, b"", key=key)


async def reload_to(gateway: RunningGateway, content: dict[str, Any] | str) -> Answer:
    """Write *content*, have it loaded, and expect that all goes well."""
    write(gateway, content)
    answer = await reload(gateway)
    assert answer.status == 200, answer.body
    return answer
