"""A request as the provider understands it: what it ignores is not there, what it calls otherwise has OpenAI's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from adapters.simulator.facts import Body, has_effect, holds_all, value_of
from adapters.simulator.served import Served
from adapters.spec import DialectSpec, ProviderSpec, Support
from adapters.types import Operation
from adapters.vocabulary import LogprobsShape, SchemaPlace

_ANY_OBJECT: Final = {"type": "object"}


class ReasoningForm(StrEnum):
    """Where reasoning goes."""

    FIELD = "parsed"
    TAGS = "raw"
    NOWHERE = "hidden"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the provider acts on."""

    messages: Sequence[Mapping[str, Any]] = ()
    tools: Mapping[str, Any] = field(default_factory=dict)
    """The schema of each tool's arguments, by name."""
    choice: str = "auto"
    forced_tool: str | None = None
    parallel: bool = True
    schema: Any = None
    json_object: bool = False
    stops: tuple[str, ...] = ()
    limit: int | None = None
    n: int = 1
    seed: int | None = None
    logprobs: int | None = None
    """How many candidates a token; None without log probabilities."""
    logprobs_shape: LogprobsShape = LogprobsShape.OPENAI
    stream: bool = False
    include_usage: bool = False
    usage_on_each: bool = False
    thinks: bool = False
    reasoning_form: ReasoningForm = ReasoningForm.FIELD
    service_tier: str | None = None


class Reader:
    """Reads the requests to one provider."""

    def __init__(self, spec: ProviderSpec) -> None:
        self._spec = spec
        self._params = spec.params
        form = spec.params.get("response_format.json_schema")
        self._dialect = (form.dialect if form is not None else None) or DialectSpec()

    def read(self, body: Body, operation: Operation, served: Served) -> Asked:
        """What is asked by a *body* that was found in order."""
        logprobs, shape = self._logprobs(body, operation)
        options = body.get("stream_options") if self._used(body, "stream_options.include_usage") else None
        options = options if isinstance(options, Mapping) else {}
        seed = self._used(body, "seed")
        common: dict[str, Any] = {
            "stops": self._stops(body),
            "limit": self._limit(body, operation),
            "n": self._used(body, "n") or 1,
            "seed": seed if isinstance(seed, int) else None,
            "logprobs": logprobs,
            "logprobs_shape": shape,
            "stream": bool(self._used(body, "stream")),
            "include_usage": options.get("include_usage") is True,
            "usage_on_each": options.get("continuous_usage_stats") is True,
        }
        if operation is not Operation.CHAT:
            return Asked(**common)
        choice, forced = self._choice(body, served)
        return Asked(
            **common,
            messages=body["messages"],
            tools=self._tools(body, served),
            choice=choice,
            forced_tool=forced,
            parallel=self._used(body, "parallel_tool_calls") is not False,
            schema=self._schema(body),
            json_object=self._format_is(body, "json_object"),
            thinks=served.thinks and not self._thinking_off(body, served),
            reasoning_form=self._reasoning_form(body, served),
            service_tier=self._tier(body),
        )

    def _used(self, body: Body, name: str) -> Any:
        return value_of(body, name) if has_effect(self._params.get(name), name) else None

    def _stops(self, body: Body) -> tuple[str, ...]:
        stop = self._used(body, "stop")
        return (stop,) if isinstance(stop, str) else tuple(stop or ())

    def _limit(self, body: Body, operation: Operation) -> int | None:
        if operation is Operation.COMPLETIONS:
            limit: int | None = body.get("max_tokens")  # the newer name is chat's alone
            return limit
        for name in ("max_completion_tokens", "max_tokens"):
            limit = self._used(body, name)
            if isinstance(limit, int):
                return limit
        rule = self._params.get("max_tokens")
        return rule.default if rule is not None and isinstance(rule.default, int) else None

    def _logprobs(self, body: Body, operation: Operation) -> tuple[int | None, LogprobsShape]:
        value = self._used(body, "logprobs")
        if value is None or value is False:
            return None, LogprobsShape.OPENAI
        if value is not True:
            return int(value), LogprobsShape.ARRAYS
        top = self._used(body, "top_logprobs")
        top_rule, rule = self._params.get("top_logprobs"), self._params.get("logprobs")
        if top is None and top_rule is not None and isinstance(top_rule.default, int):
            top = top_rule.default
        elif top == 0 and top_rule is not None and top_rule.default is not None:
            return None, LogprobsShape.OPENAI  # asked for none at all
        return int(top or 0), rule.response_shape if rule is not None else LogprobsShape.OPENAI

    def _tools(self, body: Body, served: Served) -> dict[str, Any]:
        if served.spec is not None and "tools" in served.spec.lacks:
            return {}
        tools = self._used(body, "tools") or ()
        functions = [tool["function"] for tool in tools if tool.get("type") == "function"]
        return {function["name"]: function.get("parameters") or _ANY_OBJECT for function in functions}

    def _choice(self, body: Body, served: Served) -> tuple[str, str | None]:
        choice = self._used(body, "tool_choice")
        word = "named" if isinstance(choice, Mapping) else choice
        rule = self._params.get("tool_choice")
        values = rule.values_for(served.canonical) if rule is not None else ()
        if word is None or (values and word not in values):
            return "auto", None
        if isinstance(choice, Mapping):
            return "required", choice["function"]["name"]
        return ("required" if choice == "any" else str(choice)), None

    def _format_is(self, body: Body, kind: str) -> bool:
        return self._used(body, f"response_format.{kind}") is True

    def _schema(self, body: Body) -> Any:
        form = body.get("response_format")
        if not isinstance(form, Mapping) or not self._used(body, f"response_format.{form.get('type')}"):
            return None
        if self._dialect.place is not SchemaPlace.OPENAI or form.get("type") != "json_schema":
            return form.get("value") or form.get("schema")
        holder = form["json_schema"]
        # Who has to be told to be strict is not so by itself.
        return (
            holder["schema"] if self._dialect.strict is None or holder.get("strict") is self._dialect.strict else None
        )

    def _thinking_off(self, body: Body, served: Served) -> bool:
        off = self._spec.reasoning.switch_for(served.canonical)
        return (bool(off) and holds_all(body, off)) or self._used(body, "reasoning_effort") == "none"

    def _reasoning_form(self, body: Body, served: Served) -> ReasoningForm:
        if body.get("include_reasoning") is False:
            return ReasoningForm.NOWHERE
        reasoning = self._spec.reasoning
        asked = body.get("reasoning_format") if "reasoning_format" in self._spec.extra_params else None
        if asked in list(ReasoningForm):
            return ReasoningForm(asked)
        tags = bool(reasoning.tags_for(served.canonical))
        if reasoning.out_field is None:
            return ReasoningForm.TAGS if tags else ReasoningForm.NOWHERE
        plain = not body.get("tools") and not body.get("response_format")
        # Where all models are said to do it, it is for want of an option that the server would be started with.
        return ReasoningForm.TAGS if tags and plain and reasoning.think_tags is not True else ReasoningForm.FIELD

    def _tier(self, body: Body) -> str | None:
        rule = self._params.get("service_tier")
        tier = self._used(body, "service_tier")
        if rule is None or rule.support is Support.IGNORED or not rule.response_map:
            return None
        words = list(rule.response_map)
        return tier if tier in words else words[0]
