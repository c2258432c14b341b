"""From a configuration of LiteLLM's proxy to one of ours, with a report of what became of each key.

Nothing is looked up while importing: no variable is read, no file it names is opened, no address is asked.
"""

from __future__ import annotations

from typing import Any

from adapters.registry import load_spec
from gateway.importing.deployments import Deployments
from gateway.importing.entries import Deployment, Entry
from gateway.importing.located import Located, Path, read
from gateway.importing.plan import Plan
from gateway.importing.references import References, variables_in
from gateway.importing.report import Report
from gateway.importing.routing import Routing, unseen
from gateway.importing.words import words

_SECTIONS = ("litellm_settings", "router_settings", "general_settings")
_KNOWN = frozenset({*_SECTIONS, "model_list", "environment_variables", "credential_list"})


class NotLiteLLMError(Exception):
    """The file is YAML, but no configuration of LiteLLM's proxy."""


def import_config(text: str) -> tuple[Plan, Report]:
    """The configuration that says what *text* says, as far as ours can.

    Raises `UnreadableYamlError` for what is no YAML and `NotLiteLLMError` for what is none of LiteLLM's.
    """
    source = read(text)
    if not isinstance(source.value, dict) or not _KNOWN & source.value.keys():
        raise NotLiteLLMError(f"none of LiteLLM's sections is in it: {', '.join(sorted(_KNOWN))}")
    return _Import(source).run()


class _Import:
    def __init__(self, source: Located) -> None:
        self._root: dict[str, Any] = source.value
        self._report = Report(source)
        self._plan = Plan()
        self._references = References(self._report)
        self._sections = {name: _mapping(self._root.get(name)) for name in _SECTIONS}
        self._routing = Routing(self._plan, self._report, self._sections)
        self._seen: set[Path] = set()

    def run(self) -> tuple[Plan, Report]:
        groups: dict[str, list[Deployment]] = {}
        drop = any(self._sections[name].get("drop_params") is True for name in ("router_settings", "litellm_settings"))
        deployments = Deployments(self._plan, self._report, self._references, drop=drop)
        entries = self._entries()
        self._references.reserve(variables_in(self._root))
        for entry in entries:
            self._references.reserve(_read_without_being_named(entry))
        for entry in entries:
            if "*" in entry.name or "*" in str(entry.params.get("model", "")):
                for one in self._expanded(entry):
                    self._add(groups, one, deployments)
            else:
                self._add(groups, entry, deployments)
        for name, targets in groups.items():
            self._routing.model(name, targets)
        self._routing.whole()
        if not self._plan.models:
            self._plan.expose_provider_models = True
        self._general()
        self._small_things()
        self._rest()
        return self._plan, self._report

    def _entries(self) -> list[Entry]:
        given = self._root.get("model_list")
        credentials = self._credentials()
        found = []
        for place, entry in enumerate(given if isinstance(given, list) else ()):
            path: Path = ("model_list", place)
            name = entry.get("model_name") if isinstance(entry, dict) else None
            if not isinstance(name, str) or not name or not name.isprintable():
                self._report.dropped(path, "an entry without a model_name that could be one")
                continue
            params = _mapping(entry.get("litellm_params"))
            # Limits are read wherever they stand: the documentation shows them in both places.
            params = {**{name: entry[name] for name in ("rpm", "tpm") if name in entry}, **params}
            named = params.pop("litellm_credential_name", None)
            if named is not None:
                params = {**credentials.get(str(named), {}), **params}
            found.append(Entry(name, path, params, _mapping(entry.get("model_info"))))
        return found

    def _credentials(self) -> dict[str, dict[str, Any]]:
        given = self._root.get("credential_list")
        return {
            str(entry.get("credential_name")): _mapping(entry.get("credential_values"))
            for entry in (given if isinstance(given, list) else ())
            if isinstance(entry, dict)
        }

    @staticmethod
    def _add(groups: dict[str, list[Deployment]], entry: Entry, deployments: Deployments) -> None:
        found = deployments.read(entry)
        if found is not None:
            groups.setdefault(entry.name, []).append(found)

    def _expanded(self, entry: Entry) -> list[Entry]:
        """What a wildcard stands for: the models that the provider's file offers, one by one."""
        at: Path = (*entry.path, "model_name")
        model = str(entry.params.get("model", ""))
        prefix, rest = words().split(model)
        known = words().prefixes.get(prefix)
        if known is None or rest != "*" or entry.name.count("*") != 1 or entry.params.get("api_base"):
            text = f"'{entry.name}': a wildcard over models nobody has listed; name each one that is used"
            self._report.dropped(at, text)
            return []
        offered = [listed.id for listed in load_spec(known.type).models if listed.offered]
        if not offered:
            self._report.dropped(at, f"'{entry.name}': {known.type} serves what it was given; name each model")
            return []
        text = f"'{entry.name}': the {len(offered)} models that are known of {known.type}, and no others"
        self._report.approximated(at, text)
        return [
            Entry(entry.name.replace("*", name), entry.path, {**entry.params, "model": f"{prefix}/{name}"}, entry.info)
            for name in offered
        ]

    def _general(self) -> None:
        general = self._sections["general_settings"]
        if general.get("master_key"):
            path: Path = ("general_settings", "master_key")
            self._seen.add(path)
            purpose = "the key of /admin, 16 characters or more"
            key = self._references.secret(general["master_key"], path, "GATEWAY_ADMIN_KEY", purpose)
            self._plan.sections["auth"] = {"admin_key": key}
            text = "auth.admin_key: it opens /admin, but asks no model; for clients: gateway keys create --secret-stdin"
            self._report.approximated(path, text)
        if general.get("database_url"):
            path = ("general_settings", "database_url")
            self._seen.add(path)
            url = self._references.secret(general["database_url"], path, "GATEWAY_DATABASE_URL", "the database")
            self._plan.sections["storage"] = {"database_url": url}
            text = "storage.database_url: give it a database of its own, as LiteLLM's keys and spend are not read"
            self._report.approximated(path, text)

    def _small_things(self) -> None:
        settings = self._sections["litellm_settings"]
        if settings.get("json_logs") is True:
            self._seen.add(("litellm_settings", "json_logs"))
            self._plan.sections.setdefault("telemetry", {})["log_format"] = "json"
            self._report.mapped(("litellm_settings", "json_logs"), "telemetry.log_format: json")
        if settings.get("set_verbose") is True:
            self._seen.add(("litellm_settings", "set_verbose"))
            self._plan.sections.setdefault("telemetry", {})["log_level"] = "debug"
            self._report.approximated(("litellm_settings", "set_verbose"), "telemetry.log_level: debug")
        for name in _mapping(self._root.get("environment_variables")):
            text = f"{name}: variables are set where the gateway is started, not in its file"
            self._report.dropped(("environment_variables", name), text)

    def _rest(self) -> None:
        for path in unseen(self._sections, self._routing.seen | self._seen):
            self._report.dropped(path, f"{path[1]}: {words().reasons.get(str(path[1]), 'nothing like it here')}")
        for name in self._root:
            if name not in _KNOWN:
                reason = words().reasons.get(name, "nothing like this section here")
                self._report.dropped((name,), f"{name}: {reason}")


def _read_without_being_named(entry: Entry) -> list[str]:
    """The variables LiteLLM reads for an entry that names no key."""
    if "api_key" in entry.params:
        return []
    prefix, _ = words().split(str(entry.params.get("model", "")))
    known = words().prefixes.get(prefix)
    if known is None:
        return words().variables_of(prefix, ()) if prefix else []
    own = load_spec(known.type).transport.auth.env
    return [own] if own else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
