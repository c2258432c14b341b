"""From what was found to an ``overrides`` block: only the differences, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from adapters.spec import ProviderSpec
from gateway.probe.finding import Finding, Verdict


def overrides_of(spec: ProviderSpec, findings: Iterable[Finding]) -> dict[str, Any]:
    """The overrides that make *spec* say what was seen. Each finding changes a list as if it were alone; here they
    are put together."""
    base = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    combined: dict[str, Any] = {}
    for finding in findings:
        if finding.verdict is Verdict.DIFFERS:
            combined = _combined(base, combined, finding.override)
    return combined


def _combined(base: Any, so_far: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    known = base if isinstance(base, Mapping) else {}
    result = dict(so_far)
    for key, value in more.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            # Who states the support anew states all that goes with it.
            result[key] = {**old, **value} if "support" in value else _combined(known.get(key), old, value)
        elif isinstance(old, list) and isinstance(value, list):
            before = [_plain(one) for one in known.get(key) or ()]
            gone = [one for one in before if one not in map(_plain, value)]
            added = [one for one in value if _plain(one) not in before]
            result[key] = [one for one in old if _plain(one) not in gone] + [one for one in added if one not in old]
        else:
            result[key] = value
    return result


def _plain(value: Any) -> Any:
    """An entry of a list without what only explains it, as findings write them."""
    if not isinstance(value, Mapping):
        return value
    return {key: one for key, one in value.items() if key not in ("src", "conf", "note", "facts")}


def as_yaml(overrides: Mapping[str, Any], comment: str) -> str:
    """The block as it goes into the configuration, below a provider or a target."""
    text: str = yaml.safe_dump({"overrides": dict(overrides)}, sort_keys=False, allow_unicode=True, width=110)
    return f"# {comment}\n{text}"
