"""The sections of a provider file about requests: parameters, messages, adapters, and the context window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from adapters.spec_parts import Entry, Fact, Models, Words, for_model, is_one_of
from adapters.vocabulary import (
    FROM_TRANSPORT,
    Form,
    LogprobsShape,
    MessageRule,
    Overflow,
    PartSupport,
    SchemaPlace,
    Support,
    ToolCallIds,
)


class DialectSpec(Fact):
    """The JSON schemas a provider takes, where they are not all those that OpenAI takes."""

    place: SchemaPlace = SchemaPlace.OPENAI
    strict: bool | None = None
    """Sent as ``strict`` whatever the client said."""
    name_required: bool = False
    only_strict: bool = False
    """The rules below hold for schemas sent with ``strict: true`` alone."""
    closed_objects: bool = False
    """Every object needs ``additionalProperties: false``."""
    all_required: bool = False
    """Every property has to be in ``required``."""
    defs_only: bool = False
    """``definitions`` is not known; ``$defs`` is."""
    single_types: bool = False
    """``type`` is one word: a list of types becomes ``anyOf``."""
    no_boolean_items: bool = False
    """``items: true`` is not known; ``{}`` means the same."""
    no_external_refs: bool = False
    unknown_keywords: tuple[str, ...] = ()
    """Refused or without effect, so they are left out; the answer is checked against the client's own schema."""


class ParamSpec(Entry):
    """One request parameter."""

    to: str | None = None
    """Its name there."""
    tool: Mapping[str, Any] = Field(default_factory=dict)
    """The provider's own tool that stands for it: it goes among the tools."""
    form: Form | None = None
    """The kind of value it has to be, where OpenAI allows more."""
    map: Mapping[str, str] = Field(default_factory=dict)
    """Values to send in place of others."""
    response_map: Mapping[str, str] = Field(default_factory=dict)
    values: tuple[str, ...] = ()
    """The values it takes. For ``tool_choice``: none, auto, required, any, and ``named`` for the object."""
    by_model: Mapping[str, Words] = Field(default_factory=dict)
    """Canonical model name, or a prefix of it, to the values that model takes; see `values_for`."""
    min: float | None = None
    min_exclusive: float | None = None
    max: float | None = None
    """The largest value; of ``tools``, how many there may be."""
    max_exclusive: float | None = None
    max_items: int | None = None
    omit: tuple[int | float | str, ...] = ()
    """Values to leave out, because they say what holds anyway and are refused all the same."""
    default: int | float | str | None = None
    """What the provider itself takes for a client that says nothing, where it is not what OpenAI takes."""
    requires: str | None = None
    """A parameter without which it is refused."""
    dialect: DialectSpec | None = None
    response_shape: LogprobsShape = LogprobsShape.OPENAI
    stream_shape: LogprobsShape | None = None
    """The shape in streams, where it differs."""
    flag: str | None = None
    """The server's command line option that decides."""
    env: str | None = None
    hint: str | None = None
    """What helps, for a client that is refused it."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.src:
            raise ValueError(f"'src' is missing; '[{FROM_TRANSPORT}]' when it follows from unknown_body_fields")
        if self.support is Support.RENAMED and not (self.to or self.map or self.patch or self.form or self.dialect):
            raise ValueError("'renamed' needs 'to', 'map', 'form', 'dialect' or 'patch'")
        return self

    def values_for(self, canonical: str) -> tuple[str, ...]:
        """The values the model of that canonical name takes; empty where nothing is known to be refused."""
        return for_model(self.by_model, canonical) or self.values


class ReasoningReplaySpec(Fact):
    """Where an earlier assistant turn may carry its reasoning back; any other field of the kind is stripped."""

    field: str | None = None
    alias: str | None = None
    """Taken as well, so it may stay."""
    reject: str | None = None
    """Refused, where others are merely ignored."""
    think_tags: Models = ()
    """Models that want it in ``<think>`` tags at the start of the content instead."""


class FieldsSpec(Fact):
    """The members the provider knows inside a body, where it refuses others there as well."""

    message: tuple[str, ...] = ("role", "content", "name", "tool_calls", "tool_call_id", "function_call")
    tool_call: tuple[str, ...] = ("id", "type", "function")
    call_function: tuple[str, ...] = ("name", "arguments")
    tool: tuple[str, ...] = ("type", "function")
    function: tuple[str, ...] = ("name", "description", "parameters", "strict")


class MessagesSpec(Fact):
    """What a message may hold."""

    roles: tuple[str, ...] = ()
    developer_role: Entry | None = None
    single_system: bool | Models = False
    """Only one system message, and only in the first place: true, or the models whose template wants it so."""
    mid_conversation_system: Entry | None = None
    name: Entry | None = None
    content_parts: Mapping[str, PartSupport] = Field(default_factory=dict)
    content_as_string: bool | tuple[str, ...] = False
    """Content that is a list of text parts alone has to go as one string: true, or the roles for which it has to."""
    assistant_reasoning_in: ReasoningReplaySpec | None = None
    tool_call_ids: ToolCallIds | None = None
    """The only ids of tool calls it takes; None: any."""
    tool_call_ids_models: Models = ()
    """The models that insist on them; empty: all."""
    calls_in_content: bool | Models = False
    """Answers may hold a tool call as JSON in their content: true, or the models that do so."""
    null_fields: Entry | None = None
    null_content: Entry | None = None
    """Whether what an assistant says beside tool calls may be null, or left out."""
    empty_tool_calls: Entry | None = None
    cache_control: Entry | None = None
    fields: FieldsSpec = FieldsSpec()
    """Acted on where ``transport.unknown_body_fields.nested`` is true."""
    rules: tuple[MessageRule, ...] = ()
    unchecked: bool = False
    """It answers to roles that it does not know and to messages without content, as if all were well."""

    def ids_for(self, canonical: str) -> ToolCallIds | None:
        """What ids of tool calls have to look like for the model of that canonical name; None: anything goes."""
        insists = not self.tool_call_ids_models or is_one_of(canonical, self.tool_call_ids_models)
        return self.tool_call_ids if insists else None

    def wants_string(self, role: str) -> bool:
        """Whether content of that role that is text alone has to be a string."""
        wanted = self.content_as_string
        return wanted if isinstance(wanted, bool) else role in wanted

    def wants_single_system(self, canonical: str) -> bool:
        """Whether system messages have to be merged into a leading one for the model of that canonical name."""
        wanted = self.single_system
        return wanted if isinstance(wanted, bool) else is_one_of(canonical, wanted)


class LoraSpec(Fact):
    """How a request picks one of the adapters a server has over its base model; one of the three is told."""

    model: str | None = None
    """What ``model`` becomes, of ``{base}`` and ``{adapter}``; None: it stays the base's name."""
    field: str | None = None
    """The parameter that takes the adapter's name."""
    ids: str | None = None
    """The parameter that takes a list of numbers and weights, as llama.cpp's server has them."""
    picked_by: tuple[str, ...] = ()
    """Parameters by which a client could pick an adapter past its name; not sent on."""

    @model_validator(mode="after")
    def _tells_a_way(self) -> Self:
        in_model = self.model is not None and "{adapter}" in self.model
        if not in_model and self.field is None and self.ids is None:
            raise ValueError("one of 'model' with {adapter}, 'field' or 'ids' has to tell how an adapter is named")
        return self


class ContextSpec(Fact):
    """What happens to a request that does not fit the model's context."""

    overflow: Overflow = Overflow.ERROR
    ask_for_error: Mapping[str, Any] = Field(default_factory=dict)
    """Parameters that make it refuse such a request, instead of cutting something silently."""

    @property
    def count_first(self) -> bool:
        """Whether only the gateway can notice: the prompt has to be counted before it is sent."""
        return self.overflow is not Overflow.ERROR and not self.ask_for_error
