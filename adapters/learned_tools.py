"""Tools as a target wants them: other names, plainer schemas, and no members that it does not know."""

from __future__ import annotations

import re
from typing import Final

from adapters.draft import Draft
from adapters.learned_names import PlainToolNames, names_refused
from adapters.learned_schemas import PlainToolSchemas, keywords_refused
from adapters.pupil import Learned, Pupil
from adapters.told import Told
from adapters.tool_patches import FUNCTION_MEMBERS, CleanTools
from adapters.types import Action

_MISSING: Final = re.compile(r"required|missing")


def learn_names(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    if "tools" not in draft.body or not names_refused(told):
        return None
    tried, patch = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported), PlainToolNames()
    patch(tried)
    for param, action in (("tools", Action.RENAMED), ("messages", Action.REWRITTEN)):
        if tried.body.get(param) != draft.body.get(param):
            pupil.learn_patch("tools", patch)
            return param, action
    return None


def learn_tools(draft: Draft, told: Told, pupil: Pupil) -> Learned | None:
    words = frozenset(re.findall(r"[a-z_]+", told.text))
    if "tools" not in draft.body or not words & {"tools", "tool", "function", "strict"}:
        return None
    keep = FUNCTION_MEMBERS - {"strict"} if "strict" in words and told.unsupported else FUNCTION_MEMBERS
    clean = CleanTools(keep, fill_parameters="parameters" in words and bool(_MISSING.search(told.text)))
    for patch in (PlainToolSchemas(keywords_refused(bytes(draft.body["tools"]), told)), clean):
        tried = Draft(draft.body.copy(), draft.operation, draft.stream, draft.unsupported)
        patch(tried)
        if tried.body["tools"] != draft.body["tools"]:
            pupil.learn_patch("tools", patch)
            return "tools", Action.REWRITTEN
    return None
