"""Which models a simulated provider serves, and what is known of the one that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from adapters.simulator.faults import MODEL_PREFIX
from adapters.simulator.options import Options
from adapters.simulator.refusal import Refusals, RefusedError
from adapters.spec import ModelSpec, ModelStatus, ProviderSpec
from adapters.spec_parts import is_one_of

CONTEXT_WINDOW: Final = 32768
_THINKERS: Final = ("reason", "think")


@dataclass(frozen=True, slots=True)
class Served:
    """A model that answers."""

    id: str
    canonical: str
    spec: ModelSpec | None
    """What the file says of it, if anything."""
    context_window: int
    thinks: bool
    """Whether it writes down its reasoning before it answers."""

    @property
    def max_output_tokens(self) -> int | None:
        return self.spec.max_output_tokens if self.spec is not None else None


class ServedModels:
    """The models of one provider."""

    def __init__(self, spec: ProviderSpec, options: Options, refusals: Refusals) -> None:
        self._spec = spec
        self._options = options
        self._refusals = refusals
        self._by_id = {model.id: model for model in spec.models}
        self._any_name = not spec.models and not options.models

    def names(self) -> list[str]:
        """What the list of models shows."""
        own = [model.id for model in self._spec.models if not _gone(model, self._spec.as_of)]
        return own + [name for name in self._options.models if name not in own] or ["simulated-model"]

    def find(self, name: Any) -> Served:
        """The model called *name*; a `RefusedError` as the file words it where there is none, or none any more."""
        if not isinstance(name, str) or not name:
            raise self._refusals.invalid("Missing required parameter: 'model'.", "model")
        model = self._by_id.get(name)
        if model is not None and _gone(model, self._spec.as_of):
            raise self._missing(
                name, f"The model `{name}` has been decommissioned and is no longer served.", retired=True
            )
        listed = model is not None or self._any_name or name in self._options.models
        if not listed and not name.rpartition("/")[2].startswith(MODEL_PREFIX) and self._checks_names():
            raise self._missing(name, f"The model `{name}` does not exist or you do not have access to it.")
        window = self._options.context_window or (model.context_window if model is not None else None)
        canonical = self._spec.canonical(name)
        return Served(name, canonical, model, window or CONTEXT_WINDOW, self._thinks(name, canonical))

    def _checks_names(self) -> bool:
        """A server of one model may not look at the name at all; then its file has no case for a wrong one."""
        return self._spec.hosted or self._refusals.case("model_missing") is not None

    def _missing(self, name: str, message: str, *, retired: bool = False) -> RefusedError:
        names = ("model_retired", "model_missing") if retired else ("model_missing",)
        case = self._refusals.case(*names, "model_missing_or_no_access")
        refusal = self._refusals.by_case(case, RefusedError(message, 404, code="model_not_found", param="model"))
        if case is not None and case.message_like is not None:
            refusal.message = refusal.message.replace("`x`", f"`{name}`").replace("'x'", f"'{name}'")
        return refusal

    def _thinks(self, name: str, canonical: str) -> bool:
        """Models that have efforts, switches or tags of thinking do think; so do those that say so by their name."""
        rule, reasoning = self._spec.params.get("reasoning_effort"), self._spec.reasoning
        tags = reasoning.think_tags if not isinstance(reasoning.think_tags, bool) else ()
        known = (*(rule.by_model if rule is not None else ()), *reasoning.off_models, *tags)
        return is_one_of(canonical, known) or any(word in name.lower() for word in _THINKERS)


def _gone(model: ModelSpec, today: date) -> bool:
    """Retired, at the time the file was written; where sources disagree on that, it is still there."""
    if model.status is ModelStatus.RETIRED:
        return True
    return model.status is not ModelStatus.VERIFY and model.retired_on is not None and model.retired_on <= today
