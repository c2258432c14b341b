"""The smallest instance of a JSON schema, the same each time; or one that holds what the model was told to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_DEPTH: Final = 16
_UNIONS: Final = ("anyOf", "oneOf")
_ARGUMENTS: Final = ("arguments", "parameters", "input")

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wish:
    """What an instance should hold where the schema has a place for it."""

    calls: Sequence[tuple[str, Any]] = ()
    """Names and arguments of functions to call."""
    text: str | None = None


_NOTHING: Final = Wish()


def sample(schema: Any, wish: Wish = _NOTHING) -> Any:
    """An instance of *schema*."""
    return _Sampler(schema if isinstance(schema, Mapping) else {}, wish).of(schema, 0)


class _Sampler:
    def __init__(self, root: Schema, wish: Wish) -> None:
        self._root = root
        self._wish = wish

    def of(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping) or depth > _DEPTH:
            return None
        if "$ref" in schema:
            return self.of(self._referred(schema["$ref"]), depth + 1)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        if schema.get("allOf"):
            return self.of(self._merged(schema), depth + 1)
        for union in _UNIONS:
            if schema.get(union):
                return self._of_union(schema[union], depth)
        return self._of_type(schema, depth)

    def _of_union(self, options: Sequence[Any], depth: int) -> Any:
        if self._wish.calls:
            for option in options:
                if self._carries_call(option, 0):
                    return self.of(option, depth + 1)
        # Null would be smaller, but a client learns nothing from it.
        chosen = next((option for option in options if option.get("type") != "null"), options[0])
        properties = chosen.get("properties") or {}
        if depth == 0 and self._wish.text is not None and len(properties) == 1:
            ((name, inner),) = properties.items()
            if inner.get("type") == "string":
                return {name: self._wish.text}
        return self.of(chosen, depth + 1)

    def _of_type(self, schema: Schema, depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, depth)
        match kind:
            case "array":
                return self._array(schema, depth)
            case "integer":
                return int(_number(schema, 1))
            case "number":
                return _number(schema, 0.5)
            case "boolean":
                return True
            case "null":
                return None
            case _:
                return _text(schema)

    def _object(self, schema: Schema, depth: int) -> Any:
        properties = schema.get("properties") or {}
        required = schema.get("required")
        for name, arguments in self._wish.calls:
            if self._is_call(schema, name):
                return {"name": name, self._arguments_of(schema): arguments}
            if (
                depth == 0
                and isinstance(arguments, Mapping)
                and set(required or ()) <= set(arguments) <= set(properties)
            ):
                return arguments
        wanted = properties if required is None else [name for name in properties if name in required]
        return {name: self.of(properties[name], depth + 1) for name in wanted}

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        items = schema.get("items") or {}
        if self._wish.calls and self._carries_call(items, 0):
            most = schema.get("maxItems") or len(self._wish.calls)
            told = [_Sampler(self._root, Wish([call])) for call in self._wish.calls[:most]]
            return [one.of(items, depth + 1) for one in told]
        return [self.of(items, depth + 1) for _ in range(schema.get("minItems") or 0)]

    def _carries_call(self, schema: Any, depth: int) -> bool:
        """Whether a call that was told has a place somewhere in *schema*."""
        if not isinstance(schema, Mapping) or depth > _DEPTH:
            return False
        if "$ref" in schema:
            return self._carries_call(self._referred(schema["$ref"]), depth + 1)
        if any(self._is_call(schema, name) for name, _ in self._wish.calls):
            return True
        inner = [*(schema.get("properties") or {}).values(), schema.get("items")]
        inner += [option for union in _UNIONS for option in schema.get(union) or ()]
        return any(self._carries_call(one, depth + 1) for one in inner)

    def _is_call(self, schema: Schema, name: str) -> bool:
        """Whether an instance of *schema* is a call of the function *name*: it says so, and has arguments."""
        told = (schema.get("properties") or {}).get("name")
        names = (told.get("enum") or [told.get("const")]) if isinstance(told, Mapping) else []
        return name in names and bool(self._arguments_of(schema))

    def _arguments_of(self, schema: Schema) -> str:
        return next((name for name in _ARGUMENTS if name in schema["properties"]), "")

    def _merged(self, schema: Schema) -> Schema:
        merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for option in schema["allOf"]:
            part = self._referred(option["$ref"]) if "$ref" in option else option
            for key, value in (part or {}).items():
                old = merged.get(key)
                merged[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        return merged

    def _referred(self, reference: Any) -> Any:
        node: Any = self._root
        for part in str(reference).lstrip("#/").split("/") if reference != "#" else ():
            name = part.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, Mapping) else None
        return node


def _number(schema: Schema, step: float) -> float:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    number = 1.0
    if low is not None:
        number = max(number, low)
    if above is not None and number <= above:
        number = above + step
    if high is not None and number > high:
        number = high
    if below is not None and number >= below:
        number = below - step
    multiple = schema.get("multipleOf")
    return -(-number // multiple) * multiple if multiple else number


_FORMATS: Final = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "email": "a@example.com",
    "ipv4": "192.0.2.1",
    "time": "00:00:00Z",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def _text(schema: Schema) -> str:
    text = _FORMATS.get(schema.get("format", ""), "x")
    return text.ljust(schema.get("minLength") or 0, "x")
