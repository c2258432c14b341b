"""The smallest instance of a JSON schema, the same each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_DEPTH: Final = 16
_UNIONS: Final = ("anyOf", "oneOf", "allOf")

Schema = Mapping[str, Any]


def sample(schema: Any, root: Schema | None = None, depth: int = 0) -> Any:
    """An instance of *schema*; references are looked up in *root*."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(_referred(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for union in _UNIONS:
        options = schema.get(union)
        if options:
            return _of_union(union, options, schema, root, depth)
    return _of_type(schema, root, depth)


def _of_union(union: str, options: Any, schema: Schema, root: Schema, depth: int) -> Any:
    if union == "allOf":
        merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for option in options:
            option = _referred(option["$ref"], root) if "$ref" in option else option
            for key, value in option.items():
                old = merged.get(key)
                merged[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
        return sample(merged, root, depth + 1)
    # Null would be smaller, but a client learns nothing from it.
    chosen = next((option for option in options if option.get("type") != "null"), options[0])
    return sample(chosen, root, depth + 1)


def _of_type(schema: Schema, root: Schema, depth: int) -> Any:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind == "object" or (kind is None and "properties" in schema):
        properties = schema.get("properties") or {}
        required = schema.get("required")
        wanted = properties if required is None else [name for name in properties if name in required]
        return {name: sample(properties[name], root, depth + 1) for name in wanted}
    match kind:
        case "array":
            return [sample(schema.get("items") or {}, root, depth + 1) for _ in range(schema.get("minItems") or 0)]
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


def _referred(reference: Any, root: Schema) -> Any:
    node: Any = root
    for part in str(reference).lstrip("#/").split("/") if reference != "#" else ():
        name = part.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, Mapping) else None
    return node
