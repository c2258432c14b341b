"""nginx as a plain reverse proxy with kept connections: what passing bytes on costs at the least."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from string import Template
from typing import Final

from benchmarks.contestant import Plan, Route, Via
from benchmarks.workshop import Upstreams

NAME: Final = "nginx"

_CONFIG: Final = Template("""\
worker_processes 1;
daemon off;
pid $folder/nginx.pid;
error_log $folder/nginx-errors.log;
events { worker_connections 16384; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_buffer_size 1m;
    client_body_temp_path $folder/nginx-body;
    proxy_temp_path $folder/nginx-proxy;
    fastcgi_temp_path $folder/nginx-fastcgi;
    uwsgi_temp_path $folder/nginx-uwsgi;
    scgi_temp_path $folder/nginx-scgi;
    proxy_http_version 1.1;
    proxy_buffering off;
    proxy_read_timeout 600s;
    upstream plain { server 127.0.0.1:$port; keepalive 2048; keepalive_requests 1000000000; }
    upstream tls { server 127.0.0.1:$tls_port; keepalive 2048; keepalive_requests 1000000000; }
    server {
        listen 127.0.0.1:$own_port backlog=4096;
        location /v1/ { proxy_pass http://plain; proxy_set_header Connection ""; }
        location /tls/v1/ {
            proxy_pass https://tls/v1/;
            proxy_set_header Connection "";
            proxy_ssl_verify on;
            proxy_ssl_trusted_certificate $ca_file;
            proxy_ssl_name localhost;
        }
    }
}
""")


def program() -> str | None:
    """The path of nginx, if it is installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def plan(folder: Path, port: int, upstreams: Upstreams) -> Plan | None:
    """nginx on *port*, or None where it is not installed."""
    found = program()
    if found is None:
        return None
    path = folder / "nginx.conf"
    path.write_text(
        _CONFIG.substitute(
            folder=folder, own_port=port, port=upstreams.port, tls_port=upstreams.tls_port, ca_file=upstreams.ca_file
        )
    )
    told = subprocess.run([found, "-v"], capture_output=True, text=True, check=False).stderr
    return Plan(
        name=NAME,
        command=[found, "-p", str(folder), "-c", str(path), "-e", str(folder / "nginx-errors.log")],
        routes={
            Via.PLAIN: Route("mock-70b"),
            Via.TLS: Route("mock-70b", "/tls/v1/chat/completions"),
            Via.REASONING: Route("reasoning"),
            Via.BARE_CALLS: Route("bare-calls"),
        },
        port=port,
        version=told.strip().rpartition("/")[2],
    )
