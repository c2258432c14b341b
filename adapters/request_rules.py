"""What is done with every request for one target: compiled from its facts, and from what it has refused since."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from adapters import quirks
from adapters.allow_list import AllowList
from adapters.endpoint_patches import CHAT_ONLY, EndpointPatches
from adapters.fine_tunes import AdapterNaming
from adapters.functions import FUNCTION_CALL, FUNCTIONS
from adapters.learned import LearnedFeatures, LearnedRefusals
from adapters.limit_patches import with_limit
from adapters.message_facts import MessageFacts, message_facts
from adapters.message_patches import MessagePatches
from adapters.patches import Patch, with_patch
from adapters.request_patches import compile_patches, limit_to_send
from adapters.shapes.compile import compile_rescues, compile_shapes
from adapters.shapes.retell_calls import RetellCalls
from adapters.shapes.split_inputs import SplitInputs
from adapters.spec import Support
from adapters.target import Target
from adapters.types import Operation

_encode = msgspec.json.Encoder().encode
_EMBEDDINGS = Operation.EMBEDDINGS


class RequestRules:
    """Compiled once, so that a request pays only for the parameters it carries; changed by what is learned since."""

    def __init__(self, target: Target, offers: Callable[[str], bool | None] | None = None) -> None:
        """*offers* is as in `Adapter`."""
        self.target = target
        self._provider, self._offers = target.provider, offers
        self._taught: dict[Any, Callable[[Mapping[str, Patch]], dict[str, Patch]]] = {}
        """How refusals have changed the patches since."""
        self._split: SplitInputs | None = None
        self.when_learned: Callable[[], object] = _nothing
        """Called when requests that are known already have to be made anew."""
        spec = target.spec
        canonical = spec.canonical(target.model)

        # Shapes, parameters and the names of all of them
        most, window = target.max_output_tokens, target.context_window
        patches = compile_patches(spec, self._provider, canonical, most, offers, window)
        self.patches: Mapping[str, Patch] = patches.by_param
        self.shapes = compile_shapes(spec, self._provider, offers, target.model)
        self.shape_triggers = frozenset().union(*(shape.triggers for shape in self.shapes))
        self.special = patches.special.union(*(shape.triggers for shape in self.shapes if shape.lossy))
        """Parameters for which this target may refuse a request, or give a client less than another one would."""
        self.patched = patches.unknown.union(patches.by_param, self.shape_triggers - {"stream"})
        """Parameters that this target may not take as they are."""
        self.old_calls = FUNCTIONS not in {name.partition("(")[0] for name in spec.extra_params}
        """Functions have to be sent as tools."""
        if self.old_calls:
            self.patched |= {FUNCTIONS, FUNCTION_CALL}
            self.special |= {FUNCTIONS} if "tools" in self.special else set()
        known = compile_rescues(spec, self.shapes, offers, target.model)
        self.rescues = (LearnedRefusals(self), *known, LearnedFeatures(self))
        """What may still answer a request that the provider has refused."""

        # What is looked at, whatever the parameters
        only_known = spec.transport.unknown_body_fields.only_known
        added = frozenset((*spec.context.ask_for_error, *spec.reasoning.off)) if only_known else frozenset()
        self.allow = AllowList(spec, self._provider, added) if only_known else None
        retold = any(isinstance(shape, RetellCalls) and shape.offers is None for shape in self.shapes)
        self.message_facts = message_facts(spec, self._provider, canonical, retold=retold)
        self.messages = MessagePatches(self.message_facts)
        self.endpoints = {
            operation: EndpointPatches(endpoint.lacks, endpoint.unsure, self._provider)
            for operation in (Operation.COMPLETIONS, _EMBEDDINGS)
            if (endpoint := spec.endpoints.get(operation)) is not None and (endpoint.lacks or endpoint.unsure)
        }
        self.counts_first = spec.context.count_first and target.context_window is not None
        """The prompt's length is checked before anything is sent."""

        # What is added
        self.model = msgspec.Raw(_encode(target.model)) if target.model and target.fine_tunes is None else None
        self.name_adapter = None
        if target.fine_tunes is not None and spec.lora is not None:
            self.name_adapter = AdapterNaming(target.fine_tunes, spec.lora, self._provider)
        added_always = {**spec.context.ask_for_error, **spec.defaults}
        self.defaults = [(name, msgspec.Raw(_encode(value))) for name, value in added_always.items()]
        self.text_defaults = [pair for pair in self.defaults if pair[0] not in CHAT_ONLY]
        self.limit = limit_to_send(spec, target.max_output_tokens)
        self.only_streams = False
        usage = spec.params.get("stream_options.include_usage")
        self.ask_for_usage = usage is None or usage.support in (Support.NATIVE, Support.CONDITIONAL, Support.LIMITED)
        self.progress_param = spec.streaming.progress_param
        self.quirk = quirks.request_quirk(spec)

    # What a target turns out not to take

    def learn_patch(self, param: str, patch: Patch) -> None:
        """Call *patch* as well where *param* is in a request."""
        self._teach(partial(with_patch, param=param, patch=patch))
        self.patched |= {param}

    def learn_limit(self, name: str | None, most: int | None, least: int | None = None) -> None:
        """Say the limit of an answer by *name*, none above *most*, none below *least*; None: as before."""
        self._teach(partial(with_limit, name=name, most=most, least=least))

    def _teach(self, change: partial[dict[str, Patch]]) -> None:
        lesson = (change.func, *change.keywords.items())
        if lesson in self._taught:  # requests that were on their way before are refused as well
            return
        self._taught[lesson] = change
        self.patches = change(self.patches)
        self.when_learned()

    def learn_no_usage(self) -> None:
        """Ask for no usage of streams."""
        self.ask_for_usage = False
        self.when_learned()

    def learn_streams(self) -> None:
        """Ask for streams alone."""
        self.only_streams = True
        self.when_learned()

    def learn_one_encoding(self) -> None:
        """Ask for no encoding of vectors."""
        endpoint = self.target.spec.endpoints.get(_EMBEDDINGS)
        lacks, unsure = (endpoint.lacks, endpoint.unsure) if endpoint is not None else ((), ())
        patches = EndpointPatches((*lacks, "base64"), unsure, self._provider)
        self.endpoints = {**self.endpoints, _EMBEDDINGS: patches}

    def learn_inputs(self, most: int) -> None:
        """Embed no more than *most* inputs at once."""
        self._split = SplitInputs(most)
        self.shapes = (self._split, *(shape for shape in self.shapes if not isinstance(shape, SplitInputs)))
        self.shape_triggers |= self._split.triggers
        self.patched |= self._split.triggers

    def learn_messages(self, facts: MessageFacts) -> None:
        """Know this of the target's messages."""
        self.message_facts, self.messages = facts, MessagePatches(facts)
        self.when_learned()

    def learn_facts(self, overrides: Mapping[str, Any], conflicts: Sequence[Mapping[str, Any]]) -> None:
        """Lay *overrides* and further *conflicts* over the target's facts."""
        spec = self.target.spec.with_overrides(overrides).with_conflicts(conflicts)
        made = RequestRules(replace(self.target, spec=spec), self._offers)
        self.target, self.patches = made.target, made.patches
        self.shapes, self.shape_triggers = made.shapes, made.shape_triggers
        if self._split is not None:
            self.learn_inputs(self._split.most)
        for teach in self._taught.values():
            self.patches = teach(self.patches)
        self.special, self.patched = self.special | made.special, self.patched | made.patched
        self.rescues = (self.rescues[0], *made.rescues[1:-1], self.rescues[-1])
        self.when_learned()


def _nothing() -> None:
    """There is nobody to be told."""
