"""Repairs of what comes back: a provider's answers and streams in the shape OpenAI's clients expect."""
