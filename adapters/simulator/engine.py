"""A simulated provider: a request in, an answer out, as its file says. Knows no server and no clock."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from adapters.simulator.conflicts import Conflicts
from adapters.simulator.embeddings import embed
from adapters.simulator.envelope import error_body, event_body
from adapters.simulator.facts import base_path
from adapters.simulator.faults import HEADER, Fault, FaultError, FaultKind, fault_of_model
from adapters.simulator.generation import Generation, Generator
from adapters.simulator.headers import id_headers, limit_headers
from adapters.simulator.message_rules import MessageRules
from adapters.simulator.options import Options, Pace
from adapters.simulator.params import ParamRules
from adapters.simulator.refusal import Refusals, RefusedError
from adapters.simulator.served import ServedModels
from adapters.simulator.tool_rules import ToolRules
from adapters.simulator.trouble import refuse_by, trouble_stream, trouble_whole
from adapters.simulator.wire import Answer, Request, Step, Wait, one_piece
from adapters.spec import ProviderSpec
from adapters.types import Operation

_EVENT_STREAM: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class Simulator:
    """Plays one provider. What it answers is a function of the request alone, but for the number of the request."""

    def __init__(
        self,
        spec: ProviderSpec,
        options: Options | None = None,
        *,
        on_request: Callable[[str, Any], None] = lambda path, body: None,
        on_refusal: Callable[[RefusedError], None] = lambda refusal: None,
    ) -> None:
        """*on_request* hears the path and the decoded body of each request, *on_refusal* of each that is refused."""
        self.spec = spec
        self.options = options or Options()
        self.base_path = base_path(spec)
        self.key = self.options.key_for(spec)
        self._refusals = Refusals(spec)
        self.models = ServedModels(spec, self.options, self._refusals)
        self._on_request, self._on_refusal = on_request, on_refusal
        self._params = ParamRules(spec, self._refusals)
        self._messages = MessageRules(spec, self._refusals)
        self._tools = ToolRules(spec, self._refusals)
        self._conflicts = Conflicts(spec, self._refusals)
        self._generator = Generator(spec, self._refusals)
        self._paths = {
            f"{self.base_path}{endpoint.path}": operation
            for operation in Operation
            if (endpoint := spec.endpoints.get(operation)) is not None and endpoint.available
        }
        models = spec.endpoints.get("models")
        self._models_path = f"{self.base_path}{models.path}" if models is not None and models.available else None
        self._health_path = spec.transport.health.path if spec.transport.health is not None else None
        self._served = self._faults = 0

    def handle(self, request: Request) -> Answer:
        """The answer to a request."""
        self._served += 1
        request_id = f"req_{self._served:08d}"
        headers = {**id_headers(self.spec, request_id), **limit_headers(self.spec)}
        try:
            if request.path == self._health_path:
                return one_piece(200, b'{"status":"ok"}', {})
            self._check_key(request.headers)
            if self._models_path is not None and request.method == "GET":
                found = self._list_models(request.path, self._models_path)
                if found is not None:
                    return one_piece(200, _encode(found), headers)
            operation = self._paths.get(request.path)
            if operation is None or request.method != "POST":
                message = f"Unknown request URL: {request.method} {request.path}"
                raise RefusedError(message, 404, code="unknown_url")
            return self._answer(operation, request, request_id, headers)
        except RefusedError as refusal:
            self._on_refusal(refusal)
            body = _encode(error_body(self.spec.errors.envelope, refusal))
            return one_piece(refusal.status, body, {**headers, **refusal.headers})

    def _check_key(self, headers: Mapping[str, str]) -> None:
        if self.key is None:
            return
        auth = self.spec.transport.auth
        if headers.get(auth.header.lower()) != auth.header_value(self.key):
            raise self._refusals.by_case(
                self._refusals.case("auth"), RefusedError("Invalid API Key", 401, code="invalid_api_key")
            )

    def _list_models(self, path: str, root: str) -> Any:
        name = unquote(path[len(root) + 1 :]) if path.startswith(f"{root}/") else None
        if path != root and not name:
            return None
        if name is not None:
            return self._model_entry(self.models.find(name).id)
        entries = [self._model_entry(one) for one in self.models.names()]
        return {"object": "list", "data": entries}

    def _model_entry(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 0, "owned_by": self.spec.id}

    def _answer(self, operation: Operation, request: Request, request_id: str, headers: dict[str, str]) -> Answer:
        body = self._decode(request.body)
        self._on_request(request.path, body)
        fault = self._fault(request.headers, body.get("model"))
        if fault is not None:
            refuse_by(fault, self._refusals, limit_headers(self.spec, exhausted=True))
        served = self.models.find(body.get("model"))
        if fault is not None and fault.kind is FaultKind.CONTEXT:
            raise self._refusals.too_long(served.context_window + 1, served.context_window)
        self._params.check(body, operation, served)
        seed = zlib.crc32(request.body)
        slow = fault.number if fault is not None and fault.kind is FaultKind.SLOW else None
        pace = Pace(self.options, seed, slow)
        if operation is Operation.EMBEDDINGS:
            endpoint = self.spec.endpoints[operation]
            lacks = endpoint.lacks + endpoint.unsure
            answer = _encode(embed(body, lacks, self._refusals))
            return _in_trouble(fault, one_piece(200, answer, headers, pace.first_token()), answer)
        if operation is Operation.CHAT:
            self._messages.check(body.get("messages"), served)
            self._tools.check(body)
        self._conflicts.check(body, served)
        number = hashlib.sha256(request.body).hexdigest()[:12]
        made = self._generator.generate(body, operation, served, number, request_id)
        return self._write(made, headers, pace, fault)

    def _decode(self, raw: bytes) -> dict[str, Any]:
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise self._refusals.invalid("The body is not valid JSON.", code="invalid_json") from None
        if not isinstance(body, dict):
            raise self._refusals.invalid("The body must be a JSON object.")
        return body

    def _fault(self, headers: Mapping[str, str], model: Any) -> Fault | None:
        try:
            if HEADER in headers:
                return Fault.parse(headers[HEADER])
            asked = fault_of_model(model) if isinstance(model, str) else None
        except FaultError as error:
            raise RefusedError(str(error), 400, param=HEADER) from None
        most = self.options.fault_first
        if asked is None and self.options.fault is not None and (most is None or self._faults < most):
            self._faults += 1
            return self.options.fault
        return asked

    def _write(self, made: Generation, headers: dict[str, str], pace: Pace, fault: Fault | None) -> Answer:
        empty = fault is not None and fault.kind is FaultKind.EMPTY
        if not made.asked.stream:
            answer, more = self._generator.whole(made)
            if empty:
                answer["choices"] = []
            raw = _encode(answer)
            delay = pace.first_token() + pace.tokens(made.counted.completion)
            return _in_trouble(fault, one_piece(200, raw, {**headers, **more}, delay), raw)
        steps = iter((self._generator.chunk_writer.done,)) if empty else self._events(made, pace)
        if fault is not None:
            steps = trouble_stream(fault, steps, self._error_event())
            if fault.kind is FaultKind.HANG and not fault.number:
                return Answer(200, iter(()), headers, float("inf"))
        return Answer(200, steps, {**_EVENT_STREAM, **headers}, pace.first_token())

    def _events(self, made: Generation, pace: Pace) -> Iterator[Step]:
        writer = self._generator.chunk_writer
        if writer.comment:
            yield writer.comment
        for chunk in self._generator.chunks(made):
            wait = pace.token() if chunk.is_token else 0.0
            if wait:
                yield Wait(wait)
            yield b"data: " + _encode(chunk.payload) + b"\n\n"
        if writer.done:
            yield writer.done

    def _error_event(self) -> bytes:
        refusal = RefusedError("The engine failed in the middle of the answer.", 500, "server_error")
        streaming = self.spec.streaming
        payload = event_body(self.spec.errors.envelope, streaming.error_envelope, refusal)
        done = self._generator.chunk_writer.done if streaming.error_then_done else b""
        return b"data: " + _encode(payload) + b"\n\n" + done


def _in_trouble(fault: Fault | None, answer: Answer, body: bytes) -> Answer:
    return trouble_whole(fault, answer, body) if fault is not None else answer


def _encode(payload: Any) -> bytes:
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
