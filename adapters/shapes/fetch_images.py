"""Images by address for engines that want their bytes: fetched by us, and put into the messages."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from adapters.draft import Draft
from adapters.errors import ProviderError
from adapters.patches import invalid
from adapters.shapes.base import Caller, Continue, Outcome
from adapters.shapes.bodies import changed, value_of
from adapters.shapes.together import together
from adapters.types import Action, Body, Operation

MOST_IMAGES: Final = 16
MOST_BYTES: Final = 20 * 1024 * 1024
"""Of one image; what hosted providers take."""
MOST_BYTES_IN_ALL: Final = 40 * 1024 * 1024
_PLACEHOLDER: Final = "data:image/png;base64,"


@dataclass(frozen=True, slots=True)
class FetchImages:
    """Replaces the address in each ``image_url`` part by a ``data:`` URI of what stands there."""

    param: ClassVar[str] = "messages"
    action: ClassVar[Action] = Action.REWRITTEN
    lossy: ClassVar[bool] = False
    triggers: ClassVar[frozenset[str]] = frozenset(("messages",))

    def applies(self, draft: Draft) -> bool:
        if draft.operation is not Operation.CHAT or b'"image_url"' not in bytes(draft.body.get("messages", b"")):
            return False
        found = len(list(_images(value_of(draft.body, "messages"))))
        if found > MOST_IMAGES:
            raise invalid("messages", f"At most {MOST_IMAGES} images can be given by their address.")
        return found > 0

    def first(self, body: Body) -> Body:
        messages = value_of(body, "messages")
        for _, holder in _images(messages):
            holder["url"] = _PLACEHOLDER
        return changed(body, messages=messages)

    async def answer(self, body: Body, caller: Caller) -> Outcome:
        messages = value_of(body, "messages")
        found = list(_images(messages))
        addresses = {holder["url"]: where for where, holder in reversed(found)}
        fetched = await together(_fetch(url, where, caller) for url, where in addresses.items())
        data = dict(zip(addresses, fetched, strict=True))
        if sum(map(len, data.values())) > MOST_BYTES_IN_ALL * 4 // 3:
            raise invalid("messages", f"The images hold more than {MOST_BYTES_IN_ALL >> 20} MiB together.")
        for _, holder in found:
            holder["url"] = data[holder["url"]]
        return Continue(changed(body, messages=messages))


def _images(messages: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each image by address stands, and the object that holds it as ``url``."""
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for place, part in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(part, dict) or part.get("type") != "image_url":
                continue
            if isinstance(part.get("image_url"), str):
                part["image_url"] = {"url": part["image_url"]}  # some clients send the bare address
            holder = part.get("image_url")
            if (
                isinstance(holder, dict)
                and isinstance(holder.get("url"), str)
                and not holder["url"].startswith("data:")
            ):
                yield f"messages[{number}].content[{place}].image_url.url", holder


async def _fetch(url: str, where: str, caller: Caller) -> str:
    try:
        media_type, data = await caller.fetch(url, MOST_BYTES)
    except ProviderError as error:
        error.param = where
        error.message = f"The image at {where} cannot be had: {error.message}."
        raise
    if not media_type.startswith("image/"):
        raise invalid(where, f"What stands at {where} is not an image.", "invalid_image_url")
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
