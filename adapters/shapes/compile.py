"""The shapes of calls a target needs, from its provider file's facts."""

from __future__ import annotations

from typing import Final

from adapters.draft import Draft
from adapters.shapes.after_refusal import AfterRefusal
from adapters.shapes.base import Rescue, Shape
from adapters.shapes.call_missing import CallMissing
from adapters.shapes.conditions import Predicate, compile_conflict
from adapters.shapes.emulate_schema import EmulateSchema, How
from adapters.shapes.emulate_tools import EmulateForcedTool, EmulateTools
from adapters.shapes.fake_stream import FakeStream
from adapters.shapes.fan_out import FanOut
from adapters.shapes.fetch_images import FetchImages
from adapters.shapes.prompt_as_chat import PromptAsChat, chat_stands_in
from adapters.shapes.retell_calls import RetellCalls
from adapters.shapes.salvage import SalvageCall
from adapters.shapes.tools_refused import LearnedTools
from adapters.shapes.two_phase import TwoPhase
from adapters.spec import ConditionKind, ConflictSpec, ParamSpec, PartSupport, Patch, ProviderSpec, Support
from adapters.target_facts import Offers, TargetFacts

_FORMAT: Final = "response_format"
_UNBOUNDED: Final = 1_000_000


def compile_shapes(
    spec: ProviderSpec, provider: str, offers: Offers | None = None, model: str = ""
) -> tuple[Shape, ...]:
    """The shapes to ask, in order, for the target that serves *model*, the provider's id.

    *offers* tells of what depends on the model whether it has it.
    """
    canonical = spec.canonical(model)
    images: list[Shape] = [FetchImages()] if spec.messages.content_parts.get("image_url") is PartSupport.BYTES else []
    emulated = _tools(spec, provider, offers, canonical)
    others: list[Shape] = [
        *_two_phase(spec, canonical, tuple(emulated)),
        *emulated,
        # Where tools are emulated whatever the model, so is a call that is forced.
        *([] if any(shape.offers is None for shape in emulated) else _forced_tool(spec, provider, canonical)),
        *_schema(spec, provider, canonical),
    ]
    # Images are fetched and calls retold once for all choices.
    retelling = [RetellCalls(shape.provider, shape.offers) for shape in emulated]
    # First of all, so that the other shapes see a chat.
    prompts = [PromptAsChat(provider)] if chat_stands_in(spec) else []
    streams = _fake_stream(_facts(spec, offers, model))
    return (*prompts, *images, *retelling, *_fan_out(spec, tuple(others)), *others, *streams)


def _facts(spec: ProviderSpec, offers: Offers | None, model: str) -> TargetFacts:
    return TargetFacts(spec, spec.id, spec.canonical(model), None, offers)


def compile_rescues(
    spec: ProviderSpec, shapes: tuple[Shape, ...], offers: Offers | None = None, model: str = ""
) -> tuple[Rescue, ...]:
    """What may help after a refusal: some of *shapes*, and what the file says of its errors.

    The rest is as for `compile_shapes`.
    """
    rescues: list[Rescue] = [shape for shape in shapes if isinstance(shape, AfterRefusal)]
    rescues += [
        shape.offers for shape in shapes if isinstance(shape, EmulateTools) and isinstance(shape.offers, LearnedTools)
    ]
    cases = [case for case in spec.errors.cases if case.patch is Patch.SALVAGE_TOOL_CALL]
    rescues += [SalvageCall(cases)] if cases else []
    emulated = any(isinstance(shape, EmulateTools) and shape.offers is None for shape in shapes)
    forced = any(isinstance(shape, EmulateForcedTool) and shape.required and shape.named for shape in shapes)
    if not (emulated or forced or _facts(spec, offers, model).has_no_tools()):
        rescues.append(CallMissing())
    return tuple(rescues)


def _fan_out(spec: ProviderSpec, others: tuple[Shape, ...]) -> list[Shape]:
    facts = spec.params.get("n")
    if facts is None or facts.patch is not Patch.FAN_OUT:
        return [FanOut(_UNBOUNDED, others)] if others else []
    limited = facts.support is Support.LIMITED and facts.max is not None
    return [FanOut(int(facts.max or 1) if limited else 1, others)]


def _two_phase(spec: ProviderSpec, canonical: str, emulated: tuple[Shape, ...]) -> list[Shape]:
    always: dict[str, list[Predicate]] = {_FORMAT: []} if emulated else {}
    shapes: list[Shape] = []
    for conflict in spec.conflicts:
        predicate = compile_conflict(conflict, canonical) if conflict.patch is Patch.TWO_PHASE else None
        if predicate is None:
            continue
        param = _format_of(conflict)
        if conflict.only_after is not None:
            shapes.append(AfterRefusal(TwoPhase((predicate,), param=param), conflict.only_after))
        else:
            always.setdefault(param, []).append(predicate)
    for param, predicates in always.items():
        shapes.append(TwoPhase(tuple(predicates), emulated if param == _FORMAT else (), param))
    return shapes


def _format_of(conflict: ConflictSpec) -> str:
    """What holds the format that cannot stand beside tools: some have a parameter of their own for grammars."""
    heads = [condition.param.partition(".")[0] for condition in conflict.conditions]
    return next((head for head in heads if head not in ("tools", "tool_choice", "model", "stream")), _FORMAT)


def _tools(spec: ProviderSpec, provider: str, offers: Offers | None, canonical: str) -> list[EmulateTools]:
    facts = spec.params.get("tools")
    told = [case for case in spec.errors.cases if case.patch is Patch.EMULATE_TOOLS and case.match]
    if told and offers is None:
        return [EmulateTools(provider, LearnedTools(told))]
    if facts is None or facts.patch is not Patch.EMULATE_TOOLS:
        return []
    if facts.support is Support.CONDITIONAL and not facts.models:
        return [EmulateTools(provider, offers)] if offers is not None else []
    return [] if facts.held_by(canonical) else [EmulateTools(provider)]


def _forced_tool(spec: ProviderSpec, provider: str, canonical: str) -> list[Shape]:
    facts = spec.params.get("tool_choice")
    required = named = False
    if facts is not None and facts.patch is Patch.EMULATE_FORCED_TOOL:
        values = facts.values_for(canonical)
        if not facts.held_by(canonical):
            required = named = True
        elif values:
            required, named = not {"required", "any"} & set(values), "named" not in values
    conflicts = _conflicts(spec, canonical, Patch.EMULATE_FORCED_TOOL)
    return [EmulateForcedTool(provider, required, named, conflicts)] if required or named or conflicts else []


def _schema(spec: ProviderSpec, provider: str, canonical: str) -> list[Shape]:
    schema, plain = spec.params.get("response_format.json_schema"), spec.params.get("response_format.json_object")
    weaker = How.JSON_OBJECT if plain is not None and plain.held_by(canonical) else How.PROMPT
    how, how_plain = _how(schema, canonical, weaker), _how(plain, canonical, How.PROMPT)
    for conflict in spec.conflicts:
        if conflict.patch is Patch.EMULATE_SCHEMA and compile_conflict(conflict, canonical) is not None:
            names = {one.param for one in conflict.conditions if one.kind is ConditionKind.USED}
            if names & {_FORMAT, "response_format.json_object"}:
                how_plain = weaker = How.PROMPT
            if names & {_FORMAT, "response_format.json_schema"}:
                how = weaker
    keywords: frozenset[str] = frozenset()
    if how is None and schema is not None and schema.dialect is not None and schema.dialect.unknown_keywords:
        how, keywords = How.CHECKED, frozenset(schema.dialect.unknown_keywords)
    if how is None and how_plain is None:
        return []
    return [EmulateSchema(provider, how, how_plain, keywords)]


def _how(facts: ParamSpec | None, canonical: str, weaker: How) -> How | None:
    """What there is to ask for; None where the target keeps its promise."""
    if facts is None:
        return None
    taken = facts.held_by(canonical) or facts.support is Support.RENAMED
    if facts.patch is Patch.VALIDATE_SCHEMA:
        return How.CHECKED if taken else weaker
    if facts.patch is not Patch.EMULATE_SCHEMA:
        return None
    if not taken:
        return weaker
    # It depends on the model, and nobody knows on which: what comes back will tell.
    return How.CHECKED if facts.support is Support.CONDITIONAL and not facts.models else None


def _fake_stream(target: TargetFacts) -> list[Shape]:
    always: list[Predicate] = []
    shapes: list[Shape] = []
    facts = target.spec.params.get("stream")
    if facts is not None and facts.patch is Patch.FAKE_STREAM and not facts.held_by(target.canonical):
        always.append(_any)
    for conflict in target.spec.conflicts:
        predicate = compile_conflict(conflict, target.canonical) if conflict.patch is Patch.FAKE_STREAM else None
        if predicate is None or _never_sent(conflict, target):
            continue
        if conflict.only_after is not None:
            shapes.append(AfterRefusal(FakeStream((predicate,)), conflict.only_after))
        else:
            always.append(predicate)
    return [*shapes, FakeStream(tuple(always))] if always else shapes


def _never_sent(conflict: ConflictSpec, target: TargetFacts) -> bool:
    """Whether one side of *conflict* is a parameter that the target lacks: it is refused, left out, or emulated.

    True of streams alone: a shape that comes earlier sees what a client asks for, and not what is made of it.
    """
    used = {one.param for one in conflict.conditions if one.kind is ConditionKind.USED} - {"stream"}
    params = target.spec.params
    return any(target.lacks(facts) for name in used if (facts := params.get(name)) is not None)


def _any(draft: Draft) -> bool:
    """Every request is in it."""
    return True


def _conflicts(spec: ProviderSpec, canonical: str, patch: Patch) -> tuple[Predicate, ...]:
    found = [compile_conflict(conflict, canonical) for conflict in spec.conflicts if conflict.patch is patch]
    return tuple(predicate for predicate in found if predicate is not None)
