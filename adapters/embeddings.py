"""Lists of embedding vectors: in OpenAI's shape, and in the encoding that was asked for."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from adapters.answers import UnreadableError


class _Vector(msgspec.Struct, gc=False):
    index: Any = None
    object: Any = None
    embedding: msgspec.Raw = msgspec.Raw(b"null")


class _Counts(msgspec.Struct, gc=False):
    prompt_tokens: Annotated[int, msgspec.Meta(ge=0)]
    total_tokens: Annotated[int, msgspec.Meta(ge=0)]


_decode_counts = msgspec.json.Decoder(_Counts).decode
_decode_vectors = msgspec.json.Decoder(list[_Vector]).decode
_decode_inputs = msgspec.json.Decoder(list[msgspec.Raw]).decode
_DIGITS: Final = b"0123456789"
_STARTS_WITH: Final = {"base64": b'"', "float": b"["}


class MissingVectorsError(UnreadableError):
    """There is not one vector for each input; the text says what there is."""


def mend_list(
    body: bytes, kind: Any, model: Any, vectors: msgspec.Raw, usage: msgspec.Raw, named: str, inputs: int | None = None
) -> bytes:
    """The answer *body* with what strict clients need: places in the list, kinds of objects, a model, a usage.

    *kind*, *model*, *vectors* and *usage* are its members; *named* is the model where it names none. Vectors come in
    the order of their inputs, for that is how clients take them. A usage that was not told says zero, as the type has
    no other way to say so. Raises `UnreadableError` for what is no list of vectors, and `MissingVectorsError` where
    there are not as many as *inputs*.
    """
    try:
        found = _decode_vectors(vectors)
        if inputs is not None and len(found) != inputs:
            raise MissingVectorsError(f"{_counted(len(found), 'vector')} for {_counted(inputs, 'input')}")
        told = [bytes(vector.embedding) for vector in found]
        if b"null" in told:
            raise MissingVectorsError("a vector that is null")
        # Of a text in base64 the four letters may well be a part.
        if any(vector[:1] == b"[" and b"null" in vector for vector in told):
            raise MissingVectorsError("a vector with a number that is null")
        nested = any(vector[:2] == b"[[" for vector in told)
        places = [vector.index for vector in found]
        ordered = places == list(range(len(places))) and all(type(place) is int for place in places)
        sound = ordered and all(vector.object == "embedding" for vector in found)
        if sound and kind == "list" and type(model) is str and model and not nested and _are_counts(usage):
            return body
        whole = msgspec.json.decode(body)
        if not ordered:
            whole["data"] = _in_place(whole["data"])
        for item in whole["data"]:
            item["object"] = "embedding"
            if nested:
                item["embedding"] = _flat(item["embedding"])
    except (msgspec.DecodeError, AttributeError, KeyError, RecursionError, TypeError) as error:
        raise UnreadableError(str(error)) from None
    whole["object"] = "list"
    if not isinstance(whole.get("model"), str) or not whole["model"]:
        whole["model"] = named
    if not _are_counts(usage):
        whole["usage"] = _counts(whole.get("usage"))
    return msgspec.json.encode(whole)


def _are_counts(usage: msgspec.Raw) -> bool:
    try:
        _decode_counts(usage)
    except msgspec.DecodeError:
        return False
    return True


def _counts(usage: Any) -> dict[str, Any]:
    """*usage* with both its counts: of an input they are the same."""
    told = usage if isinstance(usage, dict) else {}
    known = [int(told[name]) for name in ("prompt_tokens", "total_tokens") if _is_count(told.get(name))]
    return {**told, "prompt_tokens": known[0] if known else 0, "total_tokens": known[-1] if known else 0}


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _flat(vector: Any) -> Any:
    """The only vector of a list of them, as llama.cpp tells those of each token."""
    return vector[0] if isinstance(vector, list) and len(vector) == 1 and isinstance(vector[0], list) else vector


def inputs_of(body: Mapping[str, msgspec.Raw]) -> int | None:
    """How many vectors the request *body* asks for; None where it has no input."""
    given = bytes(body.get("input", b""))
    if not given.startswith(b"["):
        return 1 if given else None
    items = _decode_inputs(given)
    tokens = items and bytes(items[0])[:1] in _DIGITS
    return 1 if tokens else len(items)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _in_place(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """*items* in the order of their places; where these make no sense, as they came."""
    places = [item.get("index") for item in items]
    if {type(place) for place in places} == {int} and set(places) == set(range(len(items))):
        return sorted(items, key=lambda item: item["index"])
    for place, item in enumerate(items):
        item["index"] = place
    return items


def with_encoding(body: bytes, vectors: msgspec.Raw, encoding: str) -> bytes:
    """The answer *body* with its *vectors* in *encoding*: ``float`` lists, or ``base64`` of little-endian floats.

    Servers that know only one of the two send it whatever was asked for, and the OpenAI SDKs ask for base64 by default.
    Raises `UnreadableError` for vectors that are neither.
    """
    start = _STARTS_WITH[encoding]
    try:
        if all(bytes(vector.embedding)[:1] == start for vector in _decode_vectors(vectors)):
            return body
        whole = msgspec.json.decode(body)
        for item in whole["data"]:
            item["embedding"] = _encode(item["embedding"]) if encoding == "base64" else _decode(item["embedding"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, struct.error, OverflowError) as error:
        raise UnreadableError(str(error)) from None
    return msgspec.json.encode(whole)


def lengths(vectors: msgspec.Raw) -> set[int]:
    """How many numbers the *vectors* of an answer have; raises `UnreadableError` for what is no list of vectors."""
    try:
        return {len(_decode(msgspec.json.decode(vector.embedding))) for vector in _decode_vectors(vectors)}
    except (msgspec.DecodeError, TypeError, ValueError, struct.error) as error:
        raise UnreadableError(str(error)) from None


def _encode(vector: list[float] | str) -> str:
    if isinstance(vector, str):
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _decode(vector: list[float] | str) -> list[float]:
    if not isinstance(vector, str):
        return vector
    packed = base64.b64decode(vector, validate=True)
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))
