"""Many fine-tunes over one base model: a client's name for one, and the way each engine is told which it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from adapters.errors import ProviderError
from adapters.spec import LoraSpec
from adapters.types import Body, FailureKind

PLACEHOLDER: Final = "{adapter}"
"""What stands for the client's part of the name in the name the provider knows."""

# Nothing that could lead to another place: engines take paths, repositories and addresses under the same name.
_ADAPTER: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,126}(?<!\.)")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FineTunes:
    """The fine-tunes that one target has over its base model."""

    pattern: str
    """The names clients use, as ``support-fine-tunes/*``."""
    base: str
    """What the provider calls the model under them."""
    template: str = PLACEHOLDER
    """What the provider calls one of them."""
    known: Mapping[str, str | int] = field(default_factory=dict)
    """What the provider calls some of them otherwise; when there are any, there are no others."""
    always: tuple[tuple[int, float], ...] = ()
    """Number and scale of adapters that every request has, where a request names all that it wants."""
    scales: Mapping[int, float] = field(default_factory=dict)
    """The scales of those that are not 1."""


def adapter_of(pattern: str, name: str) -> str | None:
    """The part of *name* that picks a fine-tune; None when it is none of *pattern*, or could be more than a name."""
    prefix = pattern.removesuffix("*")
    if not name.startswith(prefix):
        return None
    adapter = name[len(prefix) :]
    return adapter if _ADAPTER.fullmatch(adapter) else None


class AdapterNaming:
    """Names the fine-tune of a request in a provider's own way; compiled once for a target."""

    def __init__(self, fine_tunes: FineTunes, spec: LoraSpec, provider: str) -> None:
        self._fine_tunes = fine_tunes
        self._spec = spec
        self._provider = provider

    def __call__(self, body: Body) -> None:
        """Put the fine-tune that ``model`` in *body* asks for where the provider looks for it.

        `ProviderError` UNKNOWN_ADAPTER when there certainly is no such fine-tune.
        """
        spec, fine_tunes = self._spec, self._fine_tunes
        adapter = adapter_of(fine_tunes.pattern, msgspec.json.decode(body["model"], type=str))
        if adapter is None or (fine_tunes.known and adapter not in fine_tunes.known):
            raise self.unknown()
        told = fine_tunes.known.get(adapter, fine_tunes.template.replace(PLACEHOLDER, adapter))
        for name in spec.picked_by:
            body.pop(name, None)  # a key that may use one fine-tune must not reach another by such a parameter
        model = fine_tunes.base if spec.model is None else spec.model
        body["model"] = _raw(model.replace("{base}", fine_tunes.base).replace(PLACEHOLDER, str(told)))
        if spec.field is not None:
            body[spec.field] = _raw(told)
        if spec.ids is not None:
            own = (told, fine_tunes.scales.get(told, 1.0) if isinstance(told, int) else 1.0)
            body[spec.ids] = _raw([{"id": number, "scale": scale} for number, scale in (*fine_tunes.always, own)])

    def unknown(self) -> ProviderError:
        """The failure of a request for a fine-tune that is not there."""
        return ProviderError(FailureKind.UNKNOWN_ADAPTER, self._missing(), param="model", sent=False)

    def explain(self, failure: ProviderError) -> ProviderError:
        """*failure*, said of the fine-tune where the provider does not know its name.

        The client chose that name, so the target is none the worse for it.
        """
        if failure.kind is FailureKind.NOT_FOUND:
            failure.kind, failure.message, failure.param = FailureKind.UNKNOWN_ADAPTER, self._missing(), "model"
        return failure

    def _missing(self) -> str:
        base, pattern = self._fine_tunes.base, self._fine_tunes.pattern
        return f"{self._provider} has no fine-tune of {base} by that name. Their names here are '{pattern}'."


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))
