"""The service: one OpenAI-compatible endpoint in front of hosted and self-hosted models."""
