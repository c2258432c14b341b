"""Errors a client can cause or meet, with what OpenAI clients read of them: status, type, code, param."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class GatewayError(Exception):
    """Base of all errors that become an answer. The message says what happened, to what, and what helps."""

    status: int = 500
    type: str = "server_error"
    code: str | None = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """*code* replaces the class's own where an upstream gave a more telling one."""
        super().__init__(message)
        self.message = message
        self.param = param
        self.headers = headers or {}
        if code is not None:
            self.code = code


class InvalidRequestError(GatewayError):
    """The request itself is wrong."""

    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class InvalidConfigurationError(InvalidRequestError):
    """The configuration that is to be loaded is wrong; the one in force stays."""

    code = "invalid_configuration"

    def __init__(self, message: str, problems: Sequence[Mapping[str, object]]) -> None:
        super().__init__(message)
        self.problems = problems


class InvalidJsonError(InvalidRequestError):
    """The body is no JSON object, or one that two readers could understand differently."""

    code = "invalid_json"


class MissingParameterError(InvalidRequestError):
    """A required parameter is absent."""

    code = "missing_required_parameter"

    def __init__(self, param: str) -> None:
        super().__init__(f"Missing required parameter: '{param}'.", param=param)


class UnsupportedParameterError(InvalidRequestError):
    """No target of the model can honour a parameter."""

    code = "unsupported_parameter"


class ContextLengthError(InvalidRequestError):
    """The prompt does not fit the model's context window."""

    code = "context_length_exceeded"


class MalformedHttpError(InvalidRequestError):
    """The request is not well-formed HTTP; the connection is closed after the answer."""

    code = "malformed_http"


class AuthenticationError(GatewayError):
    """No, an unknown, a revoked or an expired key: all alike, so that nothing can be learnt from it."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"

    def __init__(self, wanted: str = "a key made by `gateway keys create`") -> None:
        """*wanted* is what to send in its place."""
        super().__init__(
            f"Invalid or missing API key. Send {wanted} as 'Authorization: Bearer KEY'.",
            headers={"www-authenticate": "Bearer"},
        )


class PermissionDeniedError(GatewayError):
    """The key is good but may not do this."""

    status = 403
    type = "permission_error"
    code = "model_not_allowed"


class NotFoundError(GatewayError):
    """No such path."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"


class ModelNotFoundError(NotFoundError):
    """No such model, for this key."""

    code = "model_not_found"


class MethodNotAllowedError(GatewayError):
    """The path exists, but not with this method."""

    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


class RequestTimeoutError(GatewayError):
    """The client took too long to send its request."""

    status = 408
    type = "invalid_request_error"
    code = "request_timeout"


class RequestTooLargeError(GatewayError):
    """The body is over ``server.max_body``."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"


class UnsupportedMediaTypeError(GatewayError):
    """A compressed or otherwise encoded request body."""

    status = 415
    type = "invalid_request_error"
    code = "unsupported_content_encoding"


class ExpectationFailedError(GatewayError):
    """An ``Expect`` header with anything but ``100-continue``."""

    status = 417
    type = "invalid_request_error"
    code = "expectation_failed"


class HeadersTooLargeError(GatewayError):
    """More than 32 KiB or 100 request headers."""

    status = 431
    type = "invalid_request_error"
    code = "headers_too_large"


class RateLimitError(GatewayError):
    """Every target that could answer is rate limited, or the client is."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class UpstreamError(GatewayError):
    """Every target failed."""

    status = 502
    type = "server_error"
    code = "upstream_error"


class UpstreamAuthError(UpstreamError):
    """A provider refused the gateway's own key."""

    code = "upstream_auth"


class UpstreamPaymentError(UpstreamError):
    """The gateway's own account at a provider is out of credit."""

    code = "upstream_payment"


class OverloadedError(GatewayError):
    """Nothing can answer right now; trying again later helps."""

    status = 503
    type = "server_error"
    code = "no_healthy_upstream"


class DrainingError(OverloadedError):
    """The gateway is shutting down."""

    code = "draining"


class UpstreamTimeoutError(GatewayError):
    """Every target was too slow."""

    status = 504
    type = "timeout_error"
    code = "upstream_timeout"


class ShuttingDownError(OverloadedError):
    """The gateway stops and could not wait for this answer any longer."""

    code = "shutting_down"


class LoopDetectedError(GatewayError):
    """The request has passed this gateway before."""

    status = 508
    type = "invalid_request_error"
    code = "loop_detected"
