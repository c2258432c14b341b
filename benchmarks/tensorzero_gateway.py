"""Run the gateway that TensorZero's package carries: CONFIG PORTFILE. It takes a port by itself and writes it there."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tensorzero import _start_http_gateway

config, port_file = sys.argv[1:]
gateway = _start_http_gateway(
    config_file=config, clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False
)
Path(port_file).write_text(str(urlsplit(gateway.base_url).port))
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.pause()
