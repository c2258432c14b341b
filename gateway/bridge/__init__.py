"""The way to providers that only the litellm library knows: it runs in processes of its own, never in the gateway's."""
