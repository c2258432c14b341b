"""What a provider file says of messages, for one model, in the form that checks and changes of them need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from adapters.spec import ProviderSpec
from adapters.spec_parts import Entry
from adapters.vocabulary import MessageRule, PartSupport, Patch, Support, ToolCallIds

REASONING_FIELDS: Final = frozenset((
    "reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "thinking", "thinking_blocks",
))  # fmt: skip
"""Where clients send the reasoning of an earlier turn back, by the server it came from."""

KNOWN_PARTS: Final = (
    "text", "image_url", "input_audio", "video_url", "audio_url", "input_video", "file", "document",
    "refusal",
)  # fmt: skip
"""Types of content parts; each has its value under a member of the same name."""

_OPENAI_PARTS: Final = frozenset(("text", "image_url", "input_audio", "file", "refusal"))

ALL: Final = "*"

_LACKING: Final = (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)
_ORDER: Final = frozenset((
    MessageRule.ANSWERED_AT_ONCE, MessageRule.NO_ORPHANS, MessageRule.UNIQUE_IDS, MessageRule.ONE_TRAILING_ASSISTANT,
    MessageRule.ASSISTANT_AFTER_TOOL, MessageRule.ALTERNATING, MessageRule.USER_FIRST, MessageRule.NOT_ASSISTANT_LAST,
))  # fmt: skip
"""The rules about messages that valid ones may break."""
_ID_PATTERNS: Final = {ToolCallIds.NINE_ALPHANUMERIC: r"^[a-zA-Z0-9]{9}$"}


class ReasoningDue(StrEnum):
    """Where a model that thinks wants to see what it has thought."""

    NEVER = "never"
    WITH_CALLS = "with_calls"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """What one target takes in messages."""

    provider: str
    roles: frozenset[str]
    """Empty: any."""
    developer_to_system: bool
    functions: bool
    """The legacy role and calls of functions."""
    single_system: bool
    system_to_user: bool
    """A system message in the middle of a conversation has to be a user's."""
    names: bool
    prefix_names: bool
    parts: frozenset[str]
    """Types of content parts; empty: any."""
    text_roles: frozenset[str]
    """Roles whose content has to be a string, where it is text alone; ``*`` for all of them."""
    reasoning_known: bool
    reasoning_field: str | None
    reasoning_fields: frozenset[str]
    reasoning_as_tags: bool
    null_content: bool
    """What is said beside tool calls may be null."""
    cache_control: bool
    nested: bool
    """Members it does not know are refused inside messages as well."""
    fields: frozenset[str]
    call_fields: frozenset[str]
    call_function_fields: frozenset[str]
    ids: ToolCallIds | None
    rules: frozenset[MessageRule]
    reasoning_due: ReasoningDue = ReasoningDue.NEVER
    """Which messages of the assistant have to hold their reasoning."""
    no_system: bool = False
    """A system message has to be a user's, wherever it stands."""
    no_empty: bool = False
    """Texts that are empty or blank are refused, alone and as parts."""
    always: bool = False
    """Messages have to be looked at even where no calls are in them."""

    @property
    def id_pattern(self) -> str | None:
        """What the id of a tool call has to look like, where it matters."""
        return _ID_PATTERNS[self.ids] if self.ids is not None else None

    @property
    def differ(self) -> bool:
        """Whether there is anything that OpenAI takes and the target does not."""
        return bool(
            self.developer_to_system
            or self.single_system
            or self.system_to_user
            or self.no_system
            or self.no_empty
            or not self.names
            or self.text_roles
            or self.reasoning_known
            or not self.null_content
            or not self.cache_control
            or self.nested
            or self.ids
            or self.rules
            or self.parts
        )


def message_facts(spec: ProviderSpec, provider: str, canonical: str, *, retold: bool = False) -> MessageFacts:
    """The facts of *spec* for the model of that canonical name; *retold*: calls have become words before."""
    said = spec.messages
    nested = spec.transport.unknown_body_fields.nested
    replay = said.assistant_reasoning_in
    name = said.name
    developer = said.developer_role
    to_system = developer is not None and not _relied_on(developer, canonical)
    fields = said.fields
    tags = replay is not None and canonical.startswith(replay.think_tags) if replay and replay.think_tags else False
    kept = frozenset(field for field in (replay.field, replay.alias) if field) if replay else frozenset()
    mid = said.mid_conversation_system
    vision = next((model.vision for model in spec.models if model.canonical == canonical), True)
    parts = frozenset(
        kind
        for kind, support in said.content_parts.items()
        # Text goes as one string where it may not go in parts.
        if (support is not PartSupport.ABSENT or kind == "text")
        and (kind != "image_url" or vision or support is not PartSupport.CONDITIONAL)
    )
    facts = MessageFacts(
        provider=provider,
        roles=frozenset(said.roles) - ({"developer"} if to_system else set()),
        developer_to_system=to_system,
        functions=retold or not said.roles or "function" in said.roles,
        single_system=said.wants_single_system(canonical),
        system_to_user=mid is not None and mid.patch is Patch.MAP_TO_USER and not _relied_on(mid, canonical),
        names=name is None or name.support not in _LACKING,
        prefix_names=name is not None and name.patch is Patch.PREFIX_CONTENT,
        # Who takes all that OpenAI takes, and refuses nothing unknown, may take more.
        parts=frozenset() if not nested and parts >= _OPENAI_PARTS else parts,
        text_roles=_text_roles(said.content_as_string),
        reasoning_known=replay is not None,
        reasoning_field=replay.field if replay and not tags else None,
        reasoning_fields=frozenset() if tags else kept,
        reasoning_as_tags=tags,
        null_content=said.null_content is None or said.null_content.support not in _LACKING,
        # Where the members are listed, it is left out with whatever else is not in the list.
        cache_control=nested or said.cache_control is None or said.cache_control.support not in _LACKING,
        nested=nested,
        fields=frozenset(fields.message) | kept,
        call_fields=frozenset(fields.tool_call),
        call_function_fields=frozenset(fields.call_function),
        ids=said.ids_for(canonical),
        rules=frozenset(said.rules) & _ORDER,
    )
    # Null members and empty lists of calls go from all messages that are looked at; these are reason enough to.
    untidy = (said.null_fields, said.empty_tool_calls)
    return replace(facts, always=facts.differ or any(one is not None and one.support in _LACKING for one in untidy))


def _relied_on(entry: Entry, canonical: str) -> bool:
    """Whether the model certainly has it: what depends on a template nobody has seen is not relied on."""
    return entry.held_by(canonical) and (entry.support is not Support.CONDITIONAL or bool(entry.models))


def _text_roles(said: bool | tuple[str, ...]) -> frozenset[str]:
    if isinstance(said, bool):
        return frozenset((ALL,)) if said else frozenset()
    return frozenset(said)
