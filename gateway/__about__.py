"""The product's names and version; every prefix that users see is derived from here."""

__version__ = "0.1.0"

DISTRIBUTION = "switchgear"
COMMAND = "gateway"
ENV_PREFIX = "GATEWAY_"
HEADER_PREFIX = "x-gateway-"
METRIC_PREFIX = "gateway_"
KEY_PREFIX = "gw-"
