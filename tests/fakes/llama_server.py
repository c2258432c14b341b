"""llama.cpp's own server as a program of its own, with the words of `llama-server`: what a `command` may start.

Run as a script: ``python llama_server.py -m FILE --host PATH.sock``. Beyond those words, ``--die`` ends it at once with
a message, ``--helper SECONDS`` lets it start a ``sleep`` that outlives it, and ``--deaf`` serves nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", "--model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--embedding", action="store_true")
    parser.add_argument("--die", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--helper")
    options = parser.parse_args()
    print("this program has begun", file=sys.stderr)
    if options.die:
        print("and has nothing to live for", file=sys.stderr)
        return 3
    if options.helper:
        subprocess.Popen(["sleep", options.helper])
    if not options.deaf:
        server = serve(options)
        print(f"it listens on {server}")
    threading.Event().wait()
    return 0


def serve(options: argparse.Namespace) -> object:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.n_ctx, params.n_parallel = 512, 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 8
    params.hostnames, params.port = [options.host], options.port
    params.embedding = options.embedding
    params.ui = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    sys.exit(main())
