"""Tool calls, in pieces or whole: each with an id, a name, a place and arguments that are JSON text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from adapters.repair.arguments import arguments_text, first_arguments, is_object, same_arguments

_IDENTITY: Final = frozenset(("id", "type", "index", "function"))
_MOST_CALLS: Final = 2048

Part = dict[str, Any]


class _Call:
    __slots__ = ("announced", "id", "length", "name", "number", "own_id", "pieces", "place", "said")

    def __init__(self, number: int, place: int | None) -> None:
        self.number, self.place = number, place
        self.id = self.name = ""
        self.said = ""
        """The name that the provider said, which may not be the client's."""
        self.own_id = ""
        """The id that the provider gave it, if it did."""
        self.announced = False
        self.length = 0
        self.pieces: list[str] = []

    @property
    def whole(self) -> bool:
        return self.length > 0 and is_object(self.text)

    def take(self, text: str) -> bool:
        """Note the next piece of the arguments; False, and nothing is done, where it may be all of them once more."""
        if text.lstrip()[:1] == "{":
            return False
        self.pieces.append(text)
        self.length += len(text)
        return True

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class CallTracker:
    """The calls of one choice. What comes in is a provider's idea of the pieces, what goes out is OpenAI's.

    An upstream's index and id are hints: both are left out, repeated or given twice by some (ollama/ollama#15457,
    ollama/ollama#7881, agno-agi/agno#8879). Ids that are missing are made by *make_id* from the call's number.
    """

    def __init__(
        self,
        make_id: Callable[[int], str],
        *,
        only_first: bool = False,
        is_cut: Callable[[str], bool] | None = None,
        tidy: Callable[[str], str] | None = None,
    ) -> None:
        """*is_cut* tells of a name whether it can only be the beginning of one, *tidy* which tool's it is."""
        self._make_id = make_id
        self._only_first = only_first
        self._is_cut = is_cut
        self._tidy = tidy
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._with_id: dict[str, _Call] = {}
        self._reused: set[str] = set()
        self.more: Callable[[str], bool] | None = None
        """Takes the arguments of a piece that is like the last one but for them; None where such a piece is no more of
        the same call, or may not be."""

    def __len__(self) -> int:
        """How many calls there are; one without name and arguments is none."""
        return sum(1 for call in self._calls if call.name or call.length)

    def feed(self, parts: list[Any], *, last: bool = False) -> list[Part]:
        """The pieces to pass on; equal to *parts* where these are as they should be. *last*: the choice ends here.

        Raises `msgspec.DecodeError` for what is no call at all.
        """
        out: list[Part] = []
        self.more = None
        for position, part in enumerate(parts):
            if not isinstance(part, dict):
                raise msgspec.DecodeError("a tool call is no object")
            function = part.get("function")
            if not isinstance(function, dict):
                if part.get("type") in (None, "", "function"):
                    function = {}
                else:
                    out.append(part)  # a custom tool's call, which only OpenAI makes
                    continue
            call = self._call_of(part, function, position if len(parts) > 1 else None)
            goes_on = len(parts) == 1 and self._goes_on(call, part, function)
            made = self._piece(call, part, function, last)
            if made is not None and not (self._only_first and call.number > 0):
                out.append(made)
                if goes_on:
                    self.more = call.take
        return out

    def finish(self) -> list[Part]:
        """What completes the calls: an empty object where no arguments came, and calls that never got a name."""
        out: list[Part] = []
        for call in self._calls[:1] if self._only_first else self._calls:
            if not call.announced:
                if call.length or call.name:
                    out.append(self._announcement(call, call.text or "{}"))
            elif not call.text.strip():
                out.append({"index": call.number, "function": {"arguments": "{}"}})
        return out

    def _call_of(self, part: Part, function: Part, position: int | None) -> _Call:
        found, name, place = part.get("id"), function.get("name"), part.get("index")
        own_id = found if isinstance(found, str) and found not in self._reused else ""
        if not isinstance(place, int) or isinstance(place, bool):
            place = None
        elif not 0 <= place < _MOST_CALLS:
            raise msgspec.DecodeError("a tool call has no sensible index")
        call = self._known(own_id, name, place, function, position)
        if call is None:
            if len(self._calls) >= _MOST_CALLS:
                return self._calls[-1]
            call = _Call(len(self._calls), place)
            self._calls.append(call)
            if own_id in self._with_id:  # the provider has no second one: it tells nothing
                self._reused.add(own_id)
                own_id = ""
        if place is not None:
            self._at[place] = call
        if own_id and not call.own_id:
            call.own_id = own_id
            self._with_id[own_id] = call
        if not call.id:
            call.id = own_id or self._make_id(call.number)
        return call

    def _known(self, own_id: str, name: Any, place: int | None, function: Part, position: int | None) -> _Call | None:
        """The call that a piece belongs to, or None for the first of a new one."""
        calls, last = self._calls, self._calls[-1] if self._calls else None
        if own_id and own_id in self._with_id:
            same = self._with_id[own_id]
            moved = place is not None and same.place is not None and place != same.place
            return None if moved and name and place not in self._at and same.whole else same
        at_place = self._at.get(place) if place is not None else None
        if own_id:
            if at_place is not None and at_place.announced and not name:
                return (
                    at_place  # a call begins with its name: some give each piece an id of its own (poolsideai/pool#9)
                )
            # An id that comes late belongs to the call that is there; a new one at its place is another call.
            late = at_place or (last if place is None and not name else None)
            return late if late is not None and not late.own_id and not (name and late.name) else None
        if not name:
            if place is None and position is not None and position < len(calls):
                return calls[position]
            return at_place or last
        call = at_place if place is not None else last
        if call is None or not call.name:
            return call
        text = arguments_text(function.get("arguments"))
        again = name in (call.name, call.said) and (not text.strip() or same_arguments(text, call.text))
        return call if again or not call.whole else None

    def _goes_on(self, call: _Call, part: Part, function: Part) -> bool:
        """Whether a piece like this one, of a call that is known, is of that call too whatever its arguments are."""
        name, own_id = function.get("name"), part.get("id")
        if not call.announced or not name:
            return call.announced
        # What begins with a name may be another call, if its id does not say that it is the same.
        same = isinstance(own_id, str) and own_id not in self._reused and self._with_id.get(own_id) is call
        return same and name == call.name

    def _piece(self, call: _Call, part: Part, function: Part, last: bool) -> Part | None:
        name = function.get("name")
        text = self._new_text(call, arguments_text(function.get("arguments")), last)
        if text and not call.length:
            text = first_arguments(text, call.announced)
        if text:
            call.pieces.append(text)
            call.length += len(text)
        if not call.announced:
            if isinstance(name, str) and name != call.name:
                call.name += name
            if not call.name:
                return None  # clients want the name first: what came before it waits
            if not call.length and self._is_cut is not None and self._is_cut(call.name):
                return None  # and they want all of it: many take the first piece for the whole
            whole = self._announcement(call, call.text)
            return {**part, **whole, "function": {**function, **whole["function"]}}
        further = {"arguments": text} if text or "arguments" in function else {}
        if isinstance(name, str) and name and name not in (call.name, call.said):
            call.name += name
            further["name"] = name  # some send a name in pieces, and clients join them
        elif not text and function.get("arguments") != "":
            return None if not _extras(part) else {"index": call.number, **_extras(part)}
        made: Part = {"index": call.number, **_extras(part), "function": further}
        if part.get("type") == "function":
            made["type"] = "function"
        return made

    def _announcement(self, call: _Call, text: str) -> Part:
        call.announced = True
        call.said = call.name
        if self._tidy is not None:
            call.name = self._tidy(call.name)
        return {
            "index": call.number,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": text},
        }

    @staticmethod
    def _new_text(call: _Call, text: str, last: bool) -> str:
        """*text* without what was sent before: some say all of it once more at the end (vllm-project/vllm#42167)."""
        if not text or not call.length or text.lstrip()[:1] != "{":
            return text
        if call.whole:
            return ""  # nothing can follow a whole object
        sent = call.text
        if last and text.startswith(sent) and is_object(text) and not is_object(sent + text):
            return text[len(sent) :]
        return text


def _extras(part: Part) -> Part:
    return {name: value for name, value in part.items() if name not in _IDENTITY and value is not None}
