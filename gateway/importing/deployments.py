"""One entry of `model_list`: a target at the provider it needs, and what it says of the model it belongs to."""

from __future__ import annotations

from adapters.fine_tunes import PLACEHOLDER
from gateway.importing.amounts import count, duration, number, usd_per_million
from gateway.importing.entries import Deployment, Entry
from gateway.importing.located import Path
from gateway.importing.plan import Plan, Tree
from gateway.importing.providers import Providers
from gateway.importing.references import References
from gateway.importing.report import Report
from gateway.importing.words import words

_PRICES = {
    "input_cost_per_token": "input", "output_cost_per_token": "output", "cache_read_input_token_cost": "cached_input",
}  # fmt: skip


class Deployments:
    """Reads entries, and puts the providers they need into *plan*."""

    def __init__(self, plan: Plan, report: Report, references: References, *, drop: bool) -> None:
        """*drop*: the file as a whole lets parameters be dropped that a provider lacks."""
        self._report = report
        self._providers = Providers(plan, report, references, drop=drop)

    def read(self, entry: Entry) -> Deployment | None:
        """The target of *entry*; None when it cannot be had here, which is reported."""
        model = entry.take("model")
        if not isinstance(model, str) or not model:
            self._report.dropped(entry.path, f"'{entry.name}' names no model in litellm_params")
            return None
        mode = entry.info.get("mode")
        if mode is not None and str(mode) not in words().modes:
            at: Path = (*entry.path, "model_info", "mode")
            self._report.dropped(at, f"'{entry.name}': mode {mode} is not served here")
            return None
        given = entry.take("custom_llm_provider")
        prefix, name = (given, model.removeprefix(f"{given}/")) if isinstance(given, str) else words().split(model)
        if not name or PLACEHOLDER in model or not model.isprintable():
            self._report.dropped(entry.at("model"), f"'{entry.name}': not a model's name")
            return None
        if prefix in words().in_process:
            text = f"'{entry.name}' runs inside LiteLLM; start {prefix} as a server, and name it by type and base_url"
            self._report.dropped(entry.at("model"), text)
            return None
        known = words().prefixes.get(prefix)
        if known is not None:
            provider, called = self._providers.reached(entry, prefix, known), known.model(name)
        else:
            provider, called = self._providers.bridged(entry, prefix), f"{prefix}/{name}" if prefix else name
        deployment = Deployment(provider, {"provider": provider, "model": called}, entry.path)
        self._of_target(entry, deployment)
        self._of_model(entry, deployment)
        self._rest(entry)
        return deployment

    def _of_target(self, entry: Entry, deployment: Deployment) -> None:
        """Price, limits of the model, defaults of requests."""
        self._price(entry, deployment.target)
        for given, ours in (("max_input_tokens", "context_window"), ("max_output_tokens", "max_output_tokens")):
            value = count(entry.info.get(given))
            if value is not None:
                deployment.target[ours] = value
                self._report.mapped((*entry.path, "model_info", given), f"{ours}: {value}")
        defaults = {}
        for name in entry.params:
            if name in words().request_defaults:
                value = entry.take(name)
                if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                    defaults[name] = value
                    self._report.mapped(entry.at(name), f"{name}: sent where the client says nothing")
        if defaults:
            deployment.target["overrides"] = {"defaults": defaults}

    def _price(self, entry: Entry, target: Tree) -> None:
        price: Tree = {}
        for given, ours in _PRICES.items():
            place, holder = ("model_info", entry.info) if given in entry.info else ("litellm_params", entry.params)
            entry.seen.add(given)
            value = usd_per_million(holder.get(given))
            at: Path = (*entry.path, place, given)
            if value is not None:
                price[ours] = value
                self._report.mapped(at, f"price.{ours}: {value} USD per million tokens")
            elif given in holder:
                self._report.dropped(at, f"{given}: not a price")
        if not price:
            return
        if entry.info.get("mode") == "embedding":
            price.setdefault("output", 0)
        if "input" in price and "output" in price:
            target["price"] = price
        else:
            self._report.dropped((*entry.path, "model_info"), "a price needs both input and output; it was left out")

    def _of_model(self, entry: Entry, deployment: Deployment) -> None:
        """What stands at the target there and at the model, the provider or nowhere yet here."""
        deployment.order = count(entry.take("order")) or 0
        deployment.weight = count(entry.take("weight"))
        found = number(entry.take("timeout"))
        deployment.seconds = float(found) if found else None
        deployment.first_event = duration(entry.take("stream_timeout"))
        for name in ("max_retries", "num_retries"):
            retries = number(entry.take(name))
            deployment.retries = int(retries) if retries is not None else deployment.retries
        deployment.drop = entry.take("drop_params") is True
        deployment.concurrency = count(entry.take("max_parallel_requests"))
        for name in ("rpm", "tpm"):
            value = count(entry.take(name))
            if value is not None:
                deployment.limits[name] = value

    def _rest(self, entry: Entry) -> None:
        for name in entry.params:
            if name not in entry.seen:
                self._report.dropped(entry.at(name), f"{name}: {words().reasons.get(name, 'nothing like it here')}")
        for name in entry.info:
            if name not in (*_PRICES, "mode", "max_input_tokens", "max_output_tokens"):
                self._report.dropped((*entry.path, "model_info", name), f"{name}: {_reason(name)}")


def _reason(name: str) -> str:
    """Why a member of ``model_info`` is left out."""
    if "_cost" in name:
        return "a price is by the token here: input, output and cached input"
    if name.startswith(("supports_", "max_")):
        return "what is known of the provider and its models is used"
    return words().reasons.get(name, "it changes nothing here")
