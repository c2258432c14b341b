"""Values made at random from a JSON schema: sound ones, and others with a part replaced by whatever JSON can say."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

_TEXTS: Final = ("", "hi", "ä𝄞\u0000", "a" * 300, '"\\\n', "../..", "null", "\u202e", "0")
_NUMBERS: Final = (0, 1, -1, 2, 20, 127, 0.5, -2.0, 1e308, 5e-324, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))


class Generator:
    """Makes values for the schemas of one description; the same *seed* makes the same values."""

    def __init__(self, description: Schema, seed: int, *, broken: float = 0.0) -> None:
        """Each part of a value is replaced by something else with a chance of *broken*."""
        self._components: Schema = description["components"]["schemas"]
        self._random = random.Random(seed)
        self._broken = broken

    def value(self, schema: Schema, depth: int = 0) -> Any:
        """One value for *schema*."""
        if depth and self._random.random() < self._broken:
            return self.anything()
        if "$ref" in schema:
            return self.value(self._components[schema["$ref"].rpartition("/")[2]], depth)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self.value(self._random.choice(schema[word]), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        kinds = schema.get("type", "string")
        return self._of_kind(kinds if isinstance(kinds, str) else self._random.choice(kinds), schema, depth)

    def anything(self, depth: int = 0) -> Any:
        """Any JSON."""
        choices: list[Callable[[], Any]] = [
            lambda: None,
            lambda: self._random.random() < 0.5,
            lambda: self._random.choice(_NUMBERS),
            lambda: self._random.choice(_TEXTS),
        ]
        if depth < 3:
            choices += [
                lambda: [self.anything(depth + 1) for _ in range(self._random.randrange(4))],
                lambda: {
                    self._random.choice(_TEXTS): self.anything(depth + 1) for _ in range(self._random.randrange(4))
                },
            ]
        return self._random.choice(choices)()

    def _of_kind(self, kind: str, schema: Schema, depth: int) -> Any:
        match kind:
            case "object":
                required = schema.get("required", ())
                names = [
                    name
                    for name in schema.get("properties", {})
                    if (self._random.random() >= self._broken if name in required else self._random.random() < 0.25)
                ]
                return {name: self.value(schema["properties"][name], depth + 1) for name in names}
            case "array":
                low = schema.get("minItems", 0)
                count = self._random.randint(low, min(schema.get("maxItems", low + 3), low + 3))
                return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
            case "integer":
                low, high = schema.get("minimum", -100), schema.get("maximum", 100)
                return self._random.choice([low, high, self._random.randint(low, min(high, low + 300))])
            case "number":
                return self._random.uniform(schema.get("minimum", -100), schema.get("maximum", 100))
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case _:
                fitting = [
                    text for text in _TEXTS if schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1000)
                ]
                return self._random.choice(fitting)
