"""What stands around the choices: id, object, created, model and usage, without which strict clients read nothing."""

from __future__ import annotations

import hashlib
import time
import uuid
from typing import Any, Final

import msgspec

from adapters.plain_event import MOST_SECONDS
from adapters.repair.chunk import number_of, value_of
from adapters.repair.counts import complete
from adapters.repair.rules import Rules
from adapters.types import Operation

_OBJECTS: Final = {
    (Operation.CHAT, True): "chat.completion.chunk",
    (Operation.CHAT, False): "chat.completion",
    (Operation.COMPLETIONS, True): "text_completion",
    (Operation.COMPLETIONS, False): "text_completion",
}
_PREFIXES: Final = {Operation.CHAT: "chatcmpl-", Operation.COMPLETIONS: "cmpl-"}


class Envelope:
    """The envelope of one answer: what is missing is made up once, and stays the same in all its events."""

    def __init__(self, rules: Rules, operation: Operation, *, stream: bool) -> None:
        self._rules = rules
        self._object = _OBJECTS[operation, stream]
        self._quoted = msgspec.Raw(b'"%b"' % self._object.encode())
        self._prefix = _PREFIXES[operation]
        self._created: int | None = None
        self._model = rules.model
        self._sound: tuple[Any, ...] = ()
        """The four members of the last event that said them as they should be: said again, they need no look."""
        self.id = ""
        """The answer's id: the provider's, or ours."""

    def mend(self, top: dict[str, Any]) -> bool:
        """Fill in what is missing in *top* and take out what is the provider's own; tells whether anything was done."""
        changed = False
        for name in self._rules.private:
            changed |= top.pop(name, None) is not None
        said = (top.get("id"), top.get("object"), top.get("created"), top.get("model"))
        if said != self._sound:
            mended = self._mend(top)
            self._sound = () if mended else said
            changed |= mended
        return complete(top) or changed if "usage" in top else changed

    def call_id(self, index: int, number: int) -> str:
        """The id of the call *number* of the choice *index*, where the provider gave none."""
        seed = f"{self.id}/{index}/{number}"
        return "call_" + hashlib.blake2s(seed.encode(), digest_size=12).hexdigest()

    def _mend(self, top: dict[str, Any]) -> bool:
        changed = False
        found = value_of(top.get("id"))
        if not self.id:
            self.id = found if isinstance(found, str) and found else self._prefix + uuid.uuid4().hex
        if found != self.id:
            top["id"] = self.id
            changed = True
        if top.get("object") != self._quoted:
            top["object"] = self._object
            changed = True
        created = value_of(top.get("created"))
        if not isinstance(created, int) or isinstance(created, bool) or created > MOST_SECONDS:
            top["created"] = self._seconds(created)
            changed = True
        elif self._created is None:
            self._created = created
        model = value_of(top.get("model"))
        if not isinstance(model, str) or not model:
            top["model"] = self._model
            changed = True
        else:
            self._model = model
        return changed

    def _seconds(self, created: Any) -> int:
        number = number_of(created)
        if number is not None and number <= MOST_SECONDS * 1000:
            return int(number / 1000 if number > MOST_SECONDS else number)
        if self._created is None:
            self._created = int(time.time())
        return self._created
