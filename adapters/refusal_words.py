"""What the codes, types and wordings of refusals mean, whoever uses them and under whatever status.

Collected from the provider files, from the engines' sources and from reports of their users. They are the same to all
providers because proxies, routers and engines quote one another; what only one of them says stands in its file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from adapters.error_body import ErrorFields
from adapters.types import FailureKind as Kind
from adapters.vocabulary import PARAMETERS

_TOO_LONG: Final = "string_above_max_length"
_OF_A_NAME: Final = re.compile(r"\.(?:id|name|tool_call_id)\b|\b(?:user|metadata|safety_identifier|prompt_cache_key)\b")
"""What else may be too long: ids and names, which no shorter prompt makes shorter (vercel/ai#5171)."""
_KINDS_BY_CODE: Final[Mapping[str, Kind]] = {
    "context_length_exceeded": Kind.CONTEXT_LENGTH,
    "exceed_context_size_error": Kind.CONTEXT_LENGTH,  # llama.cpp
    "context_window_exceeded": Kind.CONTEXT_LENGTH,
    _TOO_LONG: Kind.CONTEXT_LENGTH,  # OpenAI, for a prompt of millions of characters
    "content_filter": Kind.CONTENT_FILTER,
    "content_policy_violation": Kind.CONTENT_FILTER,
    "moderation_blocked": Kind.CONTENT_FILTER,
    "responsibleaipolicyviolation": Kind.CONTENT_FILTER,  # Azure
    "invalid_api_key": Kind.AUTH,
    "insufficient_quota": Kind.PAYMENT,
    "billing_hard_limit_reached": Kind.PAYMENT,
    "billing_not_active": Kind.PAYMENT,
    "model_not_found": Kind.NOT_FOUND,
    "model_not_available": Kind.NOT_FOUND,
    "model_decommissioned": Kind.NOT_FOUND,  # Groq, with 400
    "model_deprecated": Kind.NOT_FOUND,
    "unsupported_parameter": Kind.UNSUPPORTED_PARAMETER,
    "unknown_parameter": Kind.UNSUPPORTED_PARAMETER,
    "unsupported_value": Kind.UNSUPPORTED_PARAMETER,
    "json_validate_failed": Kind.INVALID_OUTPUT,  # what the model wrote is at fault, not the request
    "tool_use_failed": Kind.INVALID_OUTPUT,
    "capacity_exceeded": Kind.OVERLOADED,
    "overloaded": Kind.OVERLOADED,  # TGI says so with 429: it is full, no quota is used up
    "overloaded_error": Kind.OVERLOADED,
    "engine_overloaded_error": Kind.OVERLOADED,
    "server_busy": Kind.OVERLOADED,
    "insufficient_memory": Kind.OVERLOADED,
}
_RATE_CODES: Final = frozenset({
    "rate_limit_exceeded", "rate_limit_error", "too_many_requests", "too_many_requests_error", "tokens", "requests",
    "request_quota_exceeded", "token_quota_exceeded", "dynamic_request_limited", "dynamic_token_limited",
})  # fmt: skip
# Codes and types that name a status where the status itself is spent: in a 200, or in the middle of a stream.
_STATUS_BY_CODE: Final[Mapping[str, int]] = {
    **dict.fromkeys(_RATE_CODES - {"tokens", "requests"}, 429),
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "notfounderror": 404,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "badrequest": 400,
    "validation": 422,  # TGI
    "generation": 424,
    "overloaded_error": 503,
    "overloaded": 503,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "unavailable_error": 503,
    "timeout": 504,
    "timeout_error": 504,
}

_CONTEXT: Final = re.compile(
    r"maximum context length|context length (?:is|of) only|context length of only"
    r"|(?:exceed(?:s|ed|ing)?|larger than|longer than|greater than|beyond) (?:the |its |this |your )*(?:model'?s? )?"
    r"(?:available |maximum |configured )*(?:context|model length|model input length|input length|sequence length)"
    r"|context (?:size|window|limit)\b|exceed_context|context the overflows|context overflows"
    r"|reduce the length of the (?:messages|input|prompt)"
    r"|max_new_tokens` must be <=|`inputs` must have less than|max_seq_len|max_model_len|max_input_len"
    r"|(?:prompt|input|message)s? (?:is|are) too (?:long|large)|prompt too long|input is too long"
    r"|too many (?:input |prompt )tokens|exceeds the maximum number of (?:input )?tokens"
    r"|model input length limit|too large for model with"
    r"|token count of \d+ exceeds|range of input length should be|maximum prompt length is|exceeded model token limit"
    r"|(?:prompt|input|message)s?(?: length| tokens?)?[ ()\d]* exceeds? (?:the )?max|prompt \u8d85\u957f"
    r"|exceeds? (?:the )?max(?:imum)? (?:allowed )?(?:message|prompt|input) (?:tokens|length|size)",
    re.IGNORECASE,
)
_FILTER: Final = re.compile(
    r"content (?:management )?policy|safety system|content filter|requires moderation"
    r"|\b(?:input|prompt|content|request|messages?|text)\b[^.]{0,40} flagged\b"
    r"|(?:blocked|rejected|refused) (?:by|due to|for) (?:our |the )?(?:safety|moderation|content)",
    re.IGNORECASE,
)
_NOT_LOADED: Final = re.compile(
    r"\bmodel\b[^.]{0,120}\b(?:failed to load|(?:could|can)(?:not|n't| not) be loaded|(?:is |was )?not loaded)\b"
    r"|(?:failed|unable|error|failure|could not|cannot)(?: to)? (?:load|loading|start|starting) (?:the |a |llama )*"
    r"(?:model|weights|checkpoint|engine)|no models? (?:is |are )?(?:currently )?loaded"
    r"|requires more (?:system |gpu )?memory",
    re.IGNORECASE,
)
_LOADING: Final = re.compile(
    r"\bloading (?:the )?model|\bmodel\b[^.]{0,100}\b(?:is|still|currently) (?:loading|being loaded|starting|"
    r"initiali[sz]ing|warming up)\b|\bmodel\b:? ?[`'\"]?[\w./:@#-]*[`'\"]? (?:is )?not (?:yet )?ready",
    re.IGNORECASE,
)
# Only a name may stand between the word and what is said of it: "the model's tool x does not exist" is another matter.
_NO_MODEL: Final = re.compile(
    r"\bmodel\b:? ?[`'\"]?[\w./:@#-]*[`'\"]?,? (?:was |is |could )?"
    r"(?:not (?:be )?found|does ?n[o']t exist|not (?:deployed|served|available)"
    r"|no longer (?:available|supported|served)"
    r"|(?:has|have) been (?:decommissioned|deprecated|retired|removed|discontinued|shut down))"
    r"|unknown model|no such model|model not found|is not a valid model",
    re.IGNORECASE,
)
# What a model cannot look at or listen to; another one of the same name may.
_NO_SENSE: Final = re.compile(
    r"(?:does not|doesn'?t|not|only) support(?:s|ed|ing)? (?:image|vision|audio|video|multi-?modal)"
    r"|not a multi-?modal model|at most 0 (?:image|audio|video)"
    r"|(?:image|vision|audio|video)s? (?:input|content|url)?s? ?(?:is|are) not supported"
    r"|unknown variant `(?:image_url|input_audio|video_url)`",
    re.IGNORECASE,
)
_NO_ADAPTER: Final = re.compile(
    r"\b(?:lora|adapter)s?\b[^.]{0,120}\b"
    r"(?:not (?:be )?(?:found|loaded|registered|available)|does ?n[o']t exist|unknown)"
    r"|(?:unknown|no such|unable to load|failed to load|error loading) (?:lora|adapter)",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"(?:invalid|incorrect|missing|expired|wrong|no) api[ _-]?key"
    r"|api[ _-]?key (?:is )?(?:not valid|invalid|expired|missing)",
    re.IGNORECASE,
)
# llama.cpp and what is made of it answer 500 to what they would not read, or were not started for.
_OF_THE_REQUEST: Final = re.compile(
    r"\[json\.exception\.|\bjinja exception: "
    r"|param requires --jinja|response_format type must be one of|missing tool call (?:type|name)"
    r"|(?:image|audio|video) input is not supported|json schema conversion failed|failed to parse (?:grammar|tools)"
    r"|unsupported content(?: part|\[\])|only one completion choice"
    r"|cannot (?:use|specify) [\w/ ]*(?:grammar|json_schema)",
    re.IGNORECASE,
)
# The parameter's name, where it is told, is the first group that matched.
_UNSUPPORTED: Final = re.compile(
    r"property '([\w.\[\]]+)' is unsupported"
    r"|extra inputs are not permitted(?:, field: ['`\"]?([\w.\[\]]+))?"
    r"|(?:unsupported|unknown|unrecognized) (?:request )?(?:parameter|argument|field|property)s?(?: supplied)?:? "
    r"['`\"]?([\w.\[\]]+)",
    re.IGNORECASE,
)
# Roles, types and formats are said to be unsupported in the same words: only a known parameter is one.
_NOT_SUPPORTED: Final = re.compile(r"['`\"]?\b([a-z_]+)\b['`\"]? is (?:not supported|unsupported)")
_PARAMETERS: Final = frozenset(name.partition(".")[0] for name in PARAMETERS)
_REFUSED: Final = frozenset({400, 413, 422, None})
_ABOUT_THE_REQUEST: Final = _REFUSED | {403, 404, 500, 501, 502}
_ABOUT_THE_MODEL: Final = _REFUSED | {404, 412, 424, 500, 501, 502, 503}


def status_of(code: str) -> int | None:
    """The status that a code or a type stands for, where it stands for one."""
    return _STATUS_BY_CODE.get(code.lower())


def kind_of(fields: ErrorFields, status: int | None) -> Kind | None:
    """What codes and wordings say beyond the status; None when they say nothing more."""
    code, kind, message = fields.code.lower(), fields.type.lower(), fields.message
    told = _KINDS_BY_CODE.get(code) or _KINDS_BY_CODE.get(kind)
    if code == _TOO_LONG and _OF_A_NAME.search(f"{fields.param} {message}"):
        return Kind.BAD_REQUEST
    if told is not None:
        return told
    if code in _RATE_CODES or kind in _RATE_CODES:
        # With 413, one request asks for more than a minute's tokens (Groq).
        return Kind.RATE_LIMITED if status in (400, 403, 413, 429, None) else None
    if status in _ABOUT_THE_REQUEST and _CONTEXT.search(message):
        return Kind.CONTEXT_LENGTH
    if status in (400, 403, 422, None) and _FILTER.search(message):
        return Kind.CONTENT_FILTER
    if status in (400, 401, 403, None) and _KEY.search(message):
        return Kind.AUTH
    if status in _ABOUT_THE_MODEL:
        if _NO_ADAPTER.search(message) or _NO_MODEL.search(message):
            return Kind.NOT_FOUND
        if _NOT_LOADED.search(message):
            return Kind.NOT_LOADED
        if _LOADING.search(message):
            return Kind.OVERLOADED
    if status in (400, 404, 422, 500) and _NO_SENSE.search(message):
        return Kind.UNSUPPORTED_PARAMETER
    if status == 500 and _OF_THE_REQUEST.search(message):
        return Kind.UNSUPPORTED_PARAMETER
    if status in (400, 422) and (_UNSUPPORTED.search(message) or refused_parameter(message)):
        return Kind.UNSUPPORTED_PARAMETER
    return None


def refused_parameter(message: str) -> str | None:
    """The parameter that a wording says is not taken, without the place it stood at."""
    found = _UNSUPPORTED.search(message)
    if found is not None:
        return next((name for name in found.groups() if name), None)
    return next((name for name in _NOT_SUPPORTED.findall(message) if name in _PARAMETERS), None)
