"""The engine's process: loads one model and serves llama.cpp's own HTTP server. Nothing else imports `xllamacpp`.

It is started as ``python -m local_engine.child``. Standard input is a pipe that brings `ChildOptions` on one line and
ends when the parent does. Standard output carries one JSON object: ``{"listening": address}`` once the model is
loaded, or ``{"failed": reason}`` before the process exits with a code of `ChildExit`. With ``--check`` it loads only
the library and reports ``{"version": …}``.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from local_engine.allocator import give_back_large_blocks
from local_engine.lifeline import die_with_parent
from local_engine.options import ChildExit, ChildOptions
from local_engine.reports import claim_stdout, tell

# A waiting connection holds a thread of the server, and health probes need one however many are waiting.
_HTTP_THREADS = 64

_FLASH_ATTENTION = {"auto": "AUTO", "on": "ENABLED", "off": "DISABLED"}


class _LibraryError(Exception):
    """xllamacpp cannot be imported; the message says what to install."""


def check() -> int:
    """Whether the library loads."""
    report = claim_stdout()
    try:
        library = _import_library()
    except _LibraryError as error:
        return _fail(report, ChildExit.LIBRARY_MISSING, str(error))
    tell(report, {"version": library.__version__})
    return ChildExit.OK


def main() -> int:
    options = ChildOptions.from_json(sys.stdin.buffer.readline().decode())
    die_with_parent(options.parent_pid, sys.stdin.fileno(), lambda: _remove_socket(options))
    # A terminal's Ctrl-C goes to the whole group: the parent decides when its engine ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = claim_stdout()
    give_back_large_blocks()
    try:
        server = _load(options)
    except _LibraryError as error:
        return _fail(report, ChildExit.LIBRARY_MISSING, str(error))
    except RuntimeError as error:
        return _fail(report, ChildExit.MODEL_UNREADABLE, f"llama.cpp could not serve {options.model_path}: {error}")
    tell(report, {"listening": server.listening_address})
    # SIGTERM ends the process at once, as nothing is worth saving: whoever sends it has let the answers finish.
    threading.Event().wait()
    return ChildExit.OK


def _load(options: ChildOptions) -> Any:
    """A running server; the call returns when the model is loaded."""
    xllamacpp = _import_library()
    params = xllamacpp.CommonParams()
    params.model.path = options.model_path
    params.model_alias = {options.name}
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots  # llama.cpp divides it among the slots
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.batch_threads
    params.n_threads_http = _HTTP_THREADS
    params.n_batch = params.n_ubatch = options.batch
    params.cache_ram_mib = options.cache_ram_mib
    params.flash_attn_type = xllamacpp.llama_flash_attn_type[
        f"LLAMA_FLASH_ATTN_TYPE_{_FLASH_ATTENTION[options.flash_attention]}"
    ]
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type[f"GGML_TYPE_{options.kv_type.upper()}"]
    params.chat_template = options.chat_template
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, scale) for path, scale in options.adapters]
    params.hostnames = [options.host]
    params.port = options.port
    params.cors_origins = ""
    params.ui = False
    if options.api_key:
        params.api_keys = [options.api_key]
    if options.pools:
        params.embedding = True
        if options.pooling is not None:
            params.pooling_type = xllamacpp.llama_pooling_type[f"LLAMA_POOLING_TYPE_{options.pooling.upper()}"]
    _remove_socket(options)  # llama.cpp does not bind over what a killed predecessor left
    return xllamacpp.Server(params)


def _import_library() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise _LibraryError(explain_import_error(error)) from error
    return xllamacpp


def explain_import_error(error: ImportError) -> str:
    """What to do about an xllamacpp that does not load."""
    if "libgomp" in str(error):
        return (
            "the local engine needs the system library libgomp.so.1: install libgomp1 (Debian, Ubuntu) or libgomp "
            "(Fedora, Alpine) with the system's package manager"
        )
    if isinstance(error, ModuleNotFoundError) and error.name == "xllamacpp":
        return "the Python package xllamacpp is not installed: there may be no build of it for this platform"
    return f"the Python package xllamacpp cannot be loaded: {error}"


def _fail(report: TextIO, code: ChildExit, reason: str) -> int:
    tell(report, {"failed": reason})
    return code


def _remove_socket(options: ChildOptions) -> None:
    if options.host.endswith(".sock"):
        Path(options.host).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(check() if sys.argv[1:] == ["--check"] else main())
