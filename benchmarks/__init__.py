"""What the gateway costs, measured beside nginx and other gateways: see README.md."""
