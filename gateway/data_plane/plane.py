"""The data plane: from a server's exchange to the pipeline and back, for every hot endpoint alike."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from adapters.draft import Unsupported
from gateway.catalog import Catalog
from gateway.data_plane.chat import CHAT
from gateway.data_plane.completions import COMPLETIONS
from gateway.data_plane.embeddings import EMBEDDINGS
from gateway.data_plane.endpoint import Endpoint, read_model_name
from gateway.data_plane.exchange import Exchange, Handler
from gateway.data_plane.extra_body import EXTRA_BODY, unpack_extra_body
from gateway.data_plane.request_id import new_request_id, safe_request_id
from gateway.data_plane.strict_json import clip, decode_members
from gateway.data_plane.unsupported import UNSUPPORTED_HEADER, read_unsupported
from gateway.errors import GatewayError, InvalidRequestError, LoopDetectedError, ModelNotFoundError, ShuttingDownError
from gateway.pipeline.authenticate import CREDENTIAL_HEADERS
from gateway.pipeline.call import Call
from gateway.pipeline.reply import send_error
from gateway.pipeline.serve import serve
from gateway.services import HOP_HEADER, Services
from gateway.storage.virtual_key import VirtualKey

ENDPOINTS: Final = (CHAT, COMPLETIONS, EMBEDDINGS)
PREFIXES: Final = ("/v1", "", "/openai/v1")
"""Every endpoint of the API answers under each of these; some clients append their own to the base URL."""

# All that is read of a request's headers; the others end here.
_READ: Final = CREDENTIAL_HEADERS | {
    b"x-request-id",
    b"x-stainless-retry-count",
    b"x-gateway-timeout",
    UNSUPPORTED_HEADER,
    HOP_HEADER,
}
_HOPS: Final = re.compile(rb"[0-9a-f]{16}(?:, [0-9a-f]{16})*")
_MOST_HOPS: Final = 32

_log = logging.getLogger(__name__)


class DataPlane:
    """Answers the generation routes; every other request belongs to the server's own application."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._routes: dict[tuple[bytes, str], Handler] = {
            (b"POST", prefix + endpoint.path): partial(self._handle, endpoint)
            for endpoint in ENDPOINTS
            for prefix in PREFIXES
        }

    @property
    def draining(self) -> bool:
        return self._services.draining

    def match(self, method: bytes, path: str) -> Handler | None:
        """The handler of a hot route; *path* is decoded and without query string."""
        return self._routes.get((method, path))

    def end_remaining(self) -> None:
        """End every request that is still under way: streams with an error event, the others with a 503."""
        for call in list(self._services.in_flight):
            call.end()

    async def _handle(self, endpoint: Endpoint, exchange: Exchange) -> None:
        services = self._services
        call = Call(exchange, endpoint.operation, services.clock(), time.time())
        try:
            headers = [header for header in exchange.headers if header[0] in _READ]
            asked = _read_headers(call, headers, services.instance_id)
            key = services.authenticator.check(headers)
            call.key = key if key is not None else await services.authenticator.look_up(headers)
            call.authenticated = True
            call.body = decode_members(bytes(exchange.body))
            if EXTRA_BODY in call.body:
                unpack_extra_body(call.body)
            name = read_model_name(call.body)
            # From here to the end of the request, whatever a reload may bring meanwhile.
            configuration = services.current
            call.model = configuration.catalog.resolve(name)
            if call.model is None:
                raise _no_such_model(name, configuration.catalog, call.key)
            if call.model.pattern:
                call.body["model"] = msgspec.Raw(msgspec.json.encode(call.model.id))  # it may have come as an alias
            call.unsupported = asked or call.model.unsupported
            endpoint.read(call)
            call.task = asyncio.current_task()
            await serve(call, services, configuration)
        except GatewayError as error:
            call.status, call.error_code = error.status, error.code or ""
            send_error(call, error)
        except asyncio.CancelledError:
            if not call.ending:
                call.status, call.error_code = 499, "client_left"
                raise
            call.status, call.error_code = 503, "shutting_down"
            if not exchange.started:
                send_error(call, ShuttingDownError("The gateway is stopping; send the request again."))
            else:
                exchange.abort()
        except Exception as bug:  # noqa: BLE001 - the edge: the client gets an answer, we get the traceback
            _log.exception("request %s failed", call.request_id, exc_info=bug)
            call.status, call.error_code = 500, "internal_error"
            if not exchange.started:
                send_error(call, GatewayError("The gateway met an error of its own; it has been logged."))
            else:
                exchange.abort()
        finally:
            call.task = None  # a task that was cancelled holds on to its frames, and so to the call
            services.settlements.add(call, services.clock())


def _read_headers(call: Call, headers: Sequence[tuple[bytes, bytes]], instance_id: bytes) -> Unsupported | None:
    """Take what the pipeline acts on from the headers; what is to be done about unsupported parameters comes back."""
    request_id = time_limit = hops = unsupported = None
    for name, value in headers:
        if name == b"x-request-id":
            request_id = safe_request_id(value)
        elif name == b"x-stainless-retry-count":
            call.client_retries = value != b"0"
        elif name == b"x-gateway-timeout":
            time_limit = value
        elif name == UNSUPPORTED_HEADER:
            unsupported = value
        elif name == HOP_HEADER:
            hops = value
    # First of all, so that a refusal carries it.
    call.request_id = request_id or new_request_id()
    if time_limit is not None:
        call.time_limit_seconds = _seconds(time_limit)
    if hops is not None:
        call.hops = _hops(hops, instance_id)
    return read_unsupported(unsupported) if unsupported is not None else None


def _seconds(value: bytes) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise InvalidRequestError("The x-gateway-timeout header has to be seconds, above 0 and at most 86400.")
    return seconds


def _hops(value: bytes, instance_id: bytes) -> bytes:
    """The gateways this request has passed; whatever else stands in the header is nothing to pass on."""
    if instance_id in value or value.count(b",") >= _MOST_HOPS:
        raise LoopDetectedError("This request has passed this gateway before: a provider's base_url points back at it.")
    return value if _HOPS.fullmatch(value) else b""


def _no_such_model(name: str, catalog: Catalog, key: VirtualKey) -> ModelNotFoundError:
    many = catalog.pattern_of(name)
    if many is not None and key.allows(name):
        base = many.targets[0].model
        message = f"The model '{clip(name)}' does not exist: it is no name of a fine-tune of {base}, as '{many.id}'."
        return ModelNotFoundError(message, param="model")
    # Names of models the key may not use are none of its business.
    near = [known for known in catalog.nearest(name) if (model := catalog.resolve(known)) and key.allows(model.id)]
    hint = f" Did you mean: {', '.join(near)}?" if near else " GET /v1/models lists those there are."
    return ModelNotFoundError(f"The model '{clip(name)}' does not exist.{hint}", param="model")
