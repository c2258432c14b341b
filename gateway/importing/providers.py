"""The provider that an entry of `model_list` needs, and how it is reached: address, key, headers, options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.registry import load_spec
from gateway.config.provider_settings import BRIDGE_TYPE
from gateway.importing.addresses import is_plain, name_of
from gateway.importing.entries import Entry
from gateway.importing.located import Path
from gateway.importing.plan import Plan, Tree
from gateway.importing.references import Reference, References, looks_secret, variable_name
from gateway.importing.report import Report
from gateway.importing.words import Prefix, words


class Providers:
    """Puts the providers that entries need into *plan*, each once."""

    def __init__(self, plan: Plan, report: Report, references: References, *, drop: bool) -> None:
        """*drop*: the file as a whole lets parameters be dropped that a provider lacks."""
        self._plan = plan
        self._drop = drop
        self._report = report
        self._references = references

    def reached(self, entry: Entry, prefix: str, known: Prefix) -> str:
        """A provider that needs no bridge."""
        address = self._address(entry, known.suffix)
        kind = known.type_at(address)
        spec = load_spec(kind)
        settings: Tree = {"type": kind}
        if address:
            settings["base_url"] = address
        given = entry.params.get("api_base") or entry.params.get("base_url")
        wanted = (name_of(given, entry.name) if kind != known.type else "") or kind
        if spec.transport.base_url is None and not address:
            variable = variable_name(kind) + "_BASE_URL"
            settings["base_url"] = self._references.variable(variable, f"the address of {wanted}, with /v1")
            text = f"{prefix} has no address in the file; export it as {variable}"
            self._report.approximated(entry.at("model"), text, ("providers", wanted))
        own = spec.transport.auth.env if not address or kind == known.type else None
        key = self._key(entry, wanted, required=not spec.transport.auth.optional, own=own)
        if key:
            settings["api_key"] = key
        self._headers(entry, settings, wanted)
        name = self._plan.provider(wanted, settings)
        about = ("providers", name)
        self._report.mapped(entry.at("model"), f"{prefix}: provider '{name}' of type {kind}", about)
        if kind != known.type and "api_key" not in entry.params:
            text = "no key in the file: none is sent, where LiteLLM would send that of the provider its prefix names"
            self._report.approximated(entry.at("model"), text, about)
        return name

    def bridged(self, entry: Entry, prefix: str) -> str:
        """A provider that only the library knows."""
        settings: Tree = {"type": BRIDGE_TYPE}
        wanted = prefix or "litellm"
        address = entry.params.get("api_base") or entry.params.get("base_url")
        options: Tree = {}
        if isinstance(address, str) and "?" in address and "@" not in address:
            # Ours are without a query, which the library takes; and queries may be signed.
            entry.seen |= {"api_base", "base_url"}
            variable, purpose = variable_name(entry.name) + "_BASE_URL", f"the address of {wanted}"
            options["api_base"] = self._references.secret(address, entry.at("api_base"), variable, purpose)
        elif found := self._address(entry, ""):
            settings["base_url"] = found
        key = self._key(entry, wanted, required=False, own=None)
        for name, value in entry.params.items():
            if words().is_option(name) and name not in entry.seen:
                entry.seen.add(name)
                self._option(entry, name, value, options, wanted)
        drop = self._drop or entry.params.get("drop_params") is True
        if drop:
            # What these providers lack is known to the library alone.
            options["drop_params"] = True
        variables: list[str] = []
        if key:
            settings["api_key"] = key
        elif prefix and not any(looks_secret(name) for name in options):
            variables = words().variables_of(prefix, entry.params)
            settings["env"] = {name: self._references.variable(name, f"credentials of {prefix}") for name in variables}
        if options:
            settings["options"] = options
        self._headers(entry, settings, wanted)
        name = self._plan.provider(wanted, settings)
        about = ("providers", name)
        what = f"{prefix}: " if prefix else "a provider LiteLLM has to find: "
        self._report.mapped(entry.at("model"), f"{what}provider '{name}' of type {BRIDGE_TYPE}", about)
        if drop:
            text = "options.drop_params: what the library drops stands in no x-gateway-adjusted"
            self._report.approximated(entry.at("model"), text, about)
        if variables:
            text = f"no key in the file: the bridge gets {', '.join(variables)}, which LiteLLM would read"
            self._report.approximated(entry.at("model"), text, about)
        return name

    def _option(self, entry: Entry, name: str, value: Any, options: Tree, provider: str) -> None:
        purpose = f"{name} of {provider}"
        if isinstance(value, (bool, int, float)):
            options[name] = value
        elif not isinstance(value, str):
            self._report.dropped(entry.at(name), f"{name}: only single values are passed on")
        elif looks_secret(name):
            options[name] = self._references.secret(value, entry.at(name), variable_name(f"{provider}_{name}"), purpose)
        else:
            options[name] = self._references.text(value, purpose)

    def _address(self, entry: Entry, suffix: str) -> str:
        name = "api_base" if entry.params.get("api_base") else "base_url"
        value = entry.take(name)
        entry.seen |= {"api_base", "base_url"}
        if not isinstance(value, str) or not value:
            return ""
        purpose = f"the address of {entry.name}"
        if self._references.is_reference(value):
            address = self._references.text(value, purpose)
        elif is_plain(value):
            address = Reference(value.rstrip("/"))
        else:
            # It may hold a password, or be none at all; either way it is not for us to write down.
            return self._references.secret(value, entry.at(name), variable_name(entry.name) + "_BASE_URL", purpose)
        return address if not suffix or address.endswith(suffix) else Reference(address + suffix)

    def _key(self, entry: Entry, provider: str, *, required: bool, own: str | None) -> str:
        """The reference that stands for the key; empty when there is none and none is needed."""
        value = entry.take("api_key")
        purpose = f"the key of {provider}"
        if value is None and own and required:
            return self._references.variable(own, purpose)
        if value is None:
            return ""
        if str(value).lower() in words().placeholders and not required:
            self._report.approximated(entry.at("api_key"), "a placeholder and no key: left out")
            return ""
        wanted = variable_name(provider) + "_API_KEY"
        return self._references.secret(value, entry.at("api_key"), wanted, purpose)

    def _headers(self, entry: Entry, settings: Tree, provider: str) -> None:
        headers: Tree = {}
        for member in ("extra_headers", "headers"):
            given = entry.take(member)
            for name, value in given.items() if isinstance(given, Mapping) else ():
                at: Path = (*entry.at(member), name)
                if not name.replace("-", "").replace("_", "").isalnum():
                    self._report.dropped(at, f"'{name}' cannot be the name of a header")
                    continue
                wanted = variable_name(f"{provider}_{name}")
                headers[name] = self._references.secret(value, at, wanted, f"header {name} of {provider}")
        organization = entry.params.get("organization")
        if organization and "organization" not in entry.seen:
            entry.seen.add("organization")
            first = organization[0] if isinstance(organization, list) else organization
            headers["OpenAI-Organization"] = self._references.text(first, "the organization")
            if isinstance(organization, list) and len(organization) > 1:
                self._report.approximated(entry.at("organization"), "only the first of several organizations")
        if headers:
            settings["headers"] = headers
