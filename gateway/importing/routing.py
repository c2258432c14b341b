"""Models, and what LiteLLM's routing becomes: the order of targets, retries, times, fallbacks, other names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.config.unbuilt import is_built
from gateway.importing.amounts import count, duration, number
from gateway.importing.entries import Deployment
from gateway.importing.located import Path
from gateway.importing.plan import Plan, Tree
from gateway.importing.report import Report
from gateway.importing.words import words

_MOST_ATTEMPTS = 10


class Routing:
    """Reads what the sections say of every model, and writes it at each."""

    def __init__(self, plan: Plan, report: Report, sections: Mapping[str, Mapping[str, Any]]) -> None:
        self._plan = plan
        self._report = report
        self._sections = sections
        self.seen: set[Path] = set()
        """The keys that were dealt with."""

    def model(self, name: str, deployments: list[Deployment]) -> None:
        """Write the model *name* with its targets."""
        about = ("models", name)
        if len({deployment.order for deployment in deployments}) > 1:
            deployments = sorted(deployments, key=lambda deployment: deployment.order)
            self._report.mapped(deployments[0].path, f"'{name}': targets in the order of their 'order'", about)
        kept: list[Deployment] = []
        for deployment in deployments:
            same = [other for other in kept if _place(other) == _place(deployment)]
            if same:
                line = self._report.source.line(same[0].path)
                self._report.approximated(deployment.path, f"'{name}': the same target as in line {line}", about)
            else:
                kept.append(deployment)
        model: Tree = {"targets": [deployment.target for deployment in kept]}
        orders = {deployment.order for deployment in kept}
        if len(orders) == 1 and len(kept) > 1:
            self._strategy(name, model, kept)
        elif len(orders) not in (1, len(kept)):
            text = f"'{name}': those of the same 'order' are tried in the order of the list too"
            self._report.approximated(kept[0].path, text, about)
        for deployment in kept:
            self._limits(name, deployment, drawn=model.get("route") == {"strategy": "weighted"})
        self._times(name, model, kept)
        self._retries(name, model, kept)
        if any(deployment.drop for deployment in kept) or self._setting("drop_params")[0] is True:
            model["unsupported"] = "drop"
        self._plan.models[name] = model

    def whole(self) -> None:
        """What concerns all models together, once they are all there."""
        drop, path = self._setting("drop_params")
        if drop is True:
            text = "unsupported: drop at each model; what is dropped stands in x-gateway-adjusted"
            self._report.mapped(path, text)
        self._fallbacks("fallbacks", ("fallback",))
        self._fallbacks("context_window_fallbacks", ("fallback_on", "context_length"))
        self._fallbacks("content_policy_fallbacks", ("fallback_on", "content_filter"))
        self._default_fallbacks()
        self._aliases()
        self._breaker()

    def _setting(self, *names: str) -> tuple[Any, Path]:
        """The first of these keys that is set, where the router's section wins, and its path."""
        for section in ("router_settings", "litellm_settings"):
            for name in names:
                if name in self._sections.get(section, {}):
                    self.seen.add((section, name))
                    return self._sections[section][name], (section, name)
        return None, ()

    def _strategy(self, name: str, model: Tree, deployments: list[Deployment]) -> None:
        given, path = self._setting("routing_strategy")
        word = given if isinstance(given, str) else "simple-shuffle"
        ours = words().strategies.get(word)
        about = ("models", name)
        at = path or deployments[0].path
        if ours is None:
            self._report.dropped(at, f"routing_strategy {word}: targets are tried in their order", about)
        elif not is_built(("models", "*", "route", "strategy"), ours):
            text = f"'{name}': {word} would be strategy {ours}; targets are tried in the order of the list"
            self._report.not_yet(at, text, about)
        else:
            model["route"] = {"strategy": ours}
            if word.startswith("usage-based"):
                self._report.approximated(at, f"'{name}': {word} as strategy {ours}", about)
            else:
                self._report.mapped(at, f"'{name}': {word} as strategy {ours}", about)

    def _limits(self, name: str, deployment: Deployment, *, drawn: bool) -> None:
        """*drawn*: the model's targets are taken by their weights."""
        about = ("models", name)
        called = f"{deployment.target['provider']}/{deployment.target['model']}"
        for key, value in (("weight", deployment.weight), ("limits", deployment.limits)):
            if not value:
                continue
            said = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else f"{key} {value}"
            if key == "weight" and not drawn:
                self._report.dropped(deployment.path, f"{called}: {said}, which counts for nothing here", about)
            elif is_built(("models", "*", "targets", "*", key), value):
                deployment.target[key] = value
                self._report.mapped(deployment.path, f"{called}: {said}", about)
            else:
                self._report.not_yet(deployment.path, f"{called}: {said}", about)
        if deployment.concurrency is not None:
            provider = self._plan.providers[deployment.provider]
            most = max(deployment.concurrency, provider.get("max_concurrency", 0))
            provider["max_concurrency"] = most
            text = f"max_parallel_requests as max_concurrency {most}, for all of provider '{deployment.provider}'"
            self._report.approximated(deployment.path, text, about)

    def _times(self, name: str, model: Tree, deployments: list[Deployment]) -> None:
        about = ("models", name)
        timeouts: Tree = {}
        own = [deployment.seconds for deployment in deployments if deployment.seconds]
        given, path = self._setting("timeout", "request_timeout")
        total = duration(max(own)) if own else duration(given)
        if total is not None:
            timeouts["total"] = total
            at, whose, of = (deployments[0].path, f"'{name}': ", about) if own else (path, "", None)
            self._report.approximated(at, f"{whose}timeouts.total: {total}, for all tries together", of)
        firsts = [deployment.first_event for deployment in deployments if deployment.first_event]
        stream, stream_path = self._setting("stream_timeout")
        first = firsts[0] if firsts else duration(stream)
        if first is not None:
            timeouts["first_event"] = first
            at, whose, of = (deployments[0].path, f"'{name}': ", about) if firsts else (stream_path, "", None)
            self._report.approximated(at, f"{whose}stream_timeout as timeouts.first_event: {first}", of)
        if timeouts:
            model["timeouts"] = timeouts

    def _retries(self, name: str, model: Tree, deployments: list[Deployment]) -> None:
        own = [deployment.retries for deployment in deployments if deployment.retries is not None]
        given, path = self._setting("num_retries")
        found = number(given)
        again = max(own) if own else None if found is None else int(found)
        if again is None:
            return
        attempts = min(again + 1, _MOST_ATTEMPTS)
        model["retries"] = {"attempts": attempts}
        at, whose = (deployments[0].path, f"'{name}': ") if own else (path, "")
        if attempts == again + 1:
            self._report.mapped(at, f"{whose}{again} retries as retries.attempts {attempts}")
        else:
            self._report.approximated(at, f"{whose}{again} retries, of which 9 are the most")

    def _fallbacks(self, word: str, key: tuple[str, ...]) -> None:
        given, path = self._setting(word)
        for place, entry in enumerate(given if isinstance(given, list) else ()):
            for source, to in entry.items() if isinstance(entry, Mapping) else ():
                at: Path = (*path, place, source)
                names = [source] if source != "*" else list(self._plan.models)
                for name in names:
                    self._fallback(name, to, key, at, word)

    def _default_fallbacks(self) -> None:
        given, path = self._setting("default_fallbacks")
        if isinstance(given, list):
            for name in self._plan.models:
                self._fallback(name, given, ("fallback",), path, "default_fallbacks")

    def _fallback(self, name: str, to: Any, key: tuple[str, ...], path: Path, word: str) -> None:
        model = self._plan.models.get(name)
        if model is None:
            self._report.dropped(path, f"{word} of '{name}', which is no model here")
            return
        given = to if isinstance(to, list) else [to]
        names = [one for one in given if isinstance(one, str) and one in self._plan.models and one != name]
        lost = [str(one) for one in given if isinstance(one, str) and one not in names and one != name]
        if lost:
            self._report.dropped(path, f"{word} of '{name}' to {', '.join(lost)}: no model here", ("models", name))
        if not names:
            return
        said = f"{word} of '{name}': {', '.join(names)}"
        if not is_built(("models", "*", *key), names):
            self._report.not_yet(path, said, ("models", name))
            return
        place = model
        for part in key[:-1]:
            place = place.setdefault(part, {})
        place[key[-1]] = [*place.get(key[-1], ()), *(one for one in names if one not in place.get(key[-1], ()))]
        self._report.mapped(path, said, ("models", name))

    def _aliases(self) -> None:
        for word in ("model_group_alias", "model_alias_map"):
            given, path = self._setting(word)
            for alias, meant in given.items() if isinstance(given, Mapping) else ():
                self._alias(str(alias), meant, (*path, alias))

    def _alias(self, alias: str, meant: Any, path: Path) -> None:
        name = meant.get("model") if isinstance(meant, Mapping) else meant
        if alias in self._plan.models:
            self._report.dropped(path, f"the alias '{alias}' is a model already")
        elif not isinstance(name, str) or name not in self._plan.models or not alias.isprintable():
            self._report.dropped(path, f"the alias '{alias}' means a model that is not here")
        else:
            self._plan.aliases[alias] = name
            self._report.mapped(path, f"alias '{alias}' of '{name}'")
            if isinstance(meant, Mapping) and meant.get("hidden"):
                self._report.dropped((*path, "hidden"), f"'{alias}': aliases stand in no list here anyway")

    def _breaker(self) -> None:
        for word, ours, read in (("allowed_fails", "errors", count), ("cooldown_time", "cooldown", duration)):
            given, path = self._setting(word)
            value = read(given)
            if value is None:
                continue
            if is_built(("policies", "breaker"), {ours: value}):
                self._plan.sections.setdefault("policies", {}).setdefault("breaker", {})[ours] = value
                self._report.mapped(path, f"policies.breaker.{ours}: {value}")
            else:
                self._report.not_yet(path, f"policies.breaker.{ours}: {value}")


def _place(deployment: Deployment) -> tuple[str, str]:
    return deployment.target["provider"], deployment.target["model"]


def unseen(sections: Mapping[str, Mapping[str, Any]], seen: Iterable[Path]) -> list[Path]:
    """The keys of *sections* that nobody has dealt with."""
    known = set(seen)
    return [(section, name) for section, keys in sections.items() for name in keys if (section, name) not in known]
