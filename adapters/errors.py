"""The one error an attempt ends with: what happened upstream, as a kind the pipeline can act on."""

from __future__ import annotations

from typing import Final

from adapters.types import FailureKind, Usage

TOOL_CALL_MISSING: Final = "tool_call_missing"
"""The code of an answer without the call that the request has forced."""


class ProviderError(Exception):
    """An attempt failed.

    *message* may be shown to the client: it never holds a secret, a header or a body of the upstream.
    *detail* is for the debug log only. *sent* is false when certainly nothing of the request left.
    *used* is what an answer says it consumed that was not good enough to pass on.
    *retry_after_seconds* is what the upstream asked for, if it did. *tries* is how often the same target may be tried
    where that is less than the kind allows. *failed_generation* is what the model wrote where the provider refused to
    pass it on; it is the client's own content, never shown but as an answer.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        param: str | None = None,
        sent: bool = True,
        retry_after_seconds: float | None = None,
        tries: int | None = None,
        failed_generation: str | None = None,
        used: Usage | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.sent = sent
        self.retry_after_seconds = retry_after_seconds
        self.tries = tries
        self.failed_generation = failed_generation
        self.used = used
        self.detail = detail

    def __repr__(self) -> str:
        return f"ProviderError({self.kind.value!r}, {self.message!r}, status={self.status})"
