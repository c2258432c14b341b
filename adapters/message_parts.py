"""Parts of content in the words of other APIs: text, pictures and thoughts, as OpenAI's chats say them."""

from __future__ import annotations

from typing import Any, Final

from adapters.message_changes import Message

_TEXTS: Final = ("input_text", "output_text")
"""What text is called in the API of responses, from which clients take it over."""
_THOUGHTS: Final = {"thinking": "thinking", "reasoning": "text", "redacted_thinking": None}
"""How an earlier turn's thoughts stand among its parts, and where their text is; the last has none to be read."""


def in_openais_words(part: Message) -> Message | None:
    """*part* as OpenAI's chats say it; None where there is nothing to translate."""
    kind, picture = part.get("type"), part.get("image_url")
    if kind in _TEXTS:
        return {"type": "text", "text": part.get("text", "")}
    if kind == "input_image" and picture is not None:
        detail = {} if part.get("detail") is None else {"detail": part["detail"]}
        return {"type": "image_url", "image_url": {"url": picture, **detail} if isinstance(picture, str) else picture}
    if kind == "image_url" and isinstance(picture, str):  # as Ollama's own documentation has it (ollama/ollama#7247)
        return {"type": "image_url", "image_url": {"url": picture}}
    source = part.get("source")
    url = _url_of(source) if kind == "image" and isinstance(source, dict) else None
    return {"type": "image_url", "image_url": {"url": url}} if url is not None else None


def without_thoughts(parts: list[Any]) -> tuple[list[Any], str] | None:
    """*parts* without what was thought, and that; None where there is none among them."""
    thoughts = [part for part in parts if _is_thought(part)]
    if not thoughts:
        return None
    texts = (part.get(name) for part in thoughts if (name := _THOUGHTS[part["type"]]) is not None)
    return [part for part in parts if not _is_thought(part)], "".join(text for text in texts if isinstance(text, str))


def _is_thought(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    return isinstance(kind, str) and kind in _THOUGHTS


def _url_of(source: Message) -> str | None:
    """The address of an Anthropic picture, which may stand in it as a whole."""
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        return f"data:{source.get('media_type', 'image/png')};base64,{source['data']}"
    url = source.get("url")
    return url if isinstance(url, str) else None
