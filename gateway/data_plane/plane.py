"""The data plane: from a server's exchange to the pipeline and back, for every hot endpoint alike."""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Final

import msgspec

from gateway.catalog import Catalog
from gateway.data_plane.chat import CHAT
from gateway.data_plane.completions import COMPLETIONS
from gateway.data_plane.embeddings import EMBEDDINGS
from gateway.data_plane.endpoint import Endpoint, read_model_name
from gateway.data_plane.exchange import Exchange, Handler
from gateway.data_plane.extra_body import EXTRA_BODY, unpack_extra_body
from gateway.data_plane.head_facts import HeadFacts, head_facts
from gateway.data_plane.known_body import KnownBodies
from gateway.data_plane.strict_json import clip, decode_members
from gateway.errors import GatewayError, ModelNotFoundError, ShuttingDownError
from gateway.pipeline.call import Call
from gateway.pipeline.reply import send_error
from gateway.pipeline.serve import serve
from gateway.request_id import new_request_id
from gateway.services import Services
from gateway.storage.virtual_key import VirtualKey

ENDPOINTS: Final = (CHAT, COMPLETIONS, EMBEDDINGS)
PREFIXES: Final = ("/v1", "", "/openai/v1")
"""Every endpoint of the API answers under each of these; some clients append their own to the base URL."""

_log = logging.getLogger(__name__)


class DataPlane:
    """Answers the generation routes; every other request belongs to the server's own application."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bodies = KnownBodies()
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
        facts: HeadFacts | None = exchange.head.facts
        comes_again = facts is not None
        if facts is None:
            facts = exchange.head.facts = head_facts(exchange.head, services)
        request_id = facts.request_id or new_request_id()
        call = Call(exchange, endpoint.operation, services.clock(), time.time(), request_id)
        try:
            if facts.refusal is not None:
                raise facts.refusal.with_traceback(None)
            if facts.says_more:
                call.client_retries, call.hops = facts.client_retries, facts.hops
                call.time_limit_seconds = facts.time_limit_seconds
            key = services.authenticator.check(facts.credentials)
            call.key = key if key is not None else await services.authenticator.look_up(facts.credentials)
            call.authenticated = True
            known = facts.body
            if known is not None and known.read(exchange.body, call):
                name = known.model
            else:
                known = None
                call.body = decode_members(exchange.body)
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
                call.known = None
            call.unsupported = facts.unsupported or call.model.unsupported
            if known is None:
                endpoint.read(call)
                if comes_again and facts.bodies_to_learn and endpoint is CHAT:
                    facts.bodies_to_learn -= 1
                    facts.body = self._bodies.learn(exchange.body, call, name)
            call.task = exchange.task or asyncio.current_task()
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
            services.in_flight.discard(call)
            call.task = None  # a task that was cancelled holds on to its frames, and so to the call
            services.settlements.add(call, services.clock())


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
