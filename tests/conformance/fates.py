"""What a provider file lets expect of a request: read off its words, and not from the code that acts on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.allow_list import FOREIGN
from adapters.simulator.conflicts import holds
from adapters.simulator.engine import Simulator
from adapters.spec import ConflictSpec, ProviderSpec, Support
from adapters.target import Target
from adapters.vocabulary import EXTENSIONS, PARAMETERS, Patch
from tests.conformance.fate_rules import HONOURED, SPECIAL, Fate, File, tools_refused
from tests.conformance.rare_uses import OWN
from tests.conformance.rehearsal import has_tools
from tests.conformance.uses import Use

_SAID_OTHERWISE = (Patch.TWO_PHASE, Patch.REASONING_PARSED, Patch.SEND_BOOLEAN)
_OPENAI = frozenset(name.partition(".")[0] for name in PARAMETERS)


def holding(simulator: Simulator, model: str, members: Mapping[str, Any]) -> list[ConflictSpec]:
    """The conflicts that a request with these *members* is in."""
    served = simulator.models.find(model)
    return [
        conflict
        for conflict in simulator.spec.conflicts
        if conflict.only_after is None and all(holds(one, members, served) for one in conflict.conditions)
    ]


def fates(simulator: Simulator, target: Target, use: Use) -> frozenset[Fate]:
    """What may become of *use* at a target whose provider *simulator* plays; mostly one thing."""
    model = target.model
    spec, served = simulator.spec, simulator.models.find(model)
    canonical = served.canonical
    facts = spec.params.get(use.param)
    if use.head == "messages":
        return HONOURED | {Fate.REFUSED}
    if any(conflict.patch is Patch.ERROR for conflict in holding(simulator, model, use.members)):
        return frozenset((Fate.REFUSED,))
    read = File(spec, canonical, has_tools(target))
    refused = tools_refused(read) if "tools" in use.members else frozenset()
    foreign = _foreign(spec, use)
    if foreign is not None:
        return foreign | refused
    for conflict in holding(simulator, model, use.members):
        if conflict.patch is Patch.DROP_FIRST and conflict.conditions[0].param == use.head:
            return frozenset((Fate.DROPPED,))
        about = use.head in {one.param.partition(".")[0] for one in conflict.conditions}
        if about and conflict.patch in _SAID_OTHERWISE and use.head not in SPECIAL:
            return frozenset((Fate.PATCHED,)) | refused
    if use in OWN:
        return frozenset(Fate) - {Fate.REFUSED} | refused | (frozenset((Fate.REFUSED,)) if facts else frozenset())
    if facts is None:
        strange = use.param in EXTENSIONS
        return frozenset((Fate.REFUSED,)) if strange and read.strict else HONOURED | refused
    special = SPECIAL.get(use.head)
    return special(read, facts, use) if special is not None else read.of(use.param, facts)


def _foreign(spec: ProviderSpec, use: Use) -> frozenset[Fate] | None:
    """What becomes of another provider's parameter; None for those of OpenAI and of the provider's own."""
    unknown = spec.transport.unknown_body_fields
    known = use.head in _OPENAI or not (unknown.only_known or unknown.support is Support.IGNORED)
    if known or (use.head not in FOREIGN and not unknown.only_known):
        return None
    own = {name.partition("(")[0].partition(".")[0] for name in spec.extra_params} | spec.reasoning.off.keys()
    own |= spec.context.ask_for_error.keys() | spec.defaults.keys()
    return None if use.head in own else frozenset((Fate.DROPPED,))
