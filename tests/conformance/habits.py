"""What providers do that no request asks for, one habit a function: what the client has to hear all the same.

Simulators answer as they should. Here a provider answers in words of the test's own instead, where its file says that
it may: it breaks the schema, refuses what may be taken, says something under a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.conformance.answer_habits import (
    ends_for_a_reason_of_its_own,
    ends_without_a_reason,
    fails_in_a_field,
    tells_of_itself,
    tells_usage_elsewhere,
    thinks_aloud,
    thinks_under_another_name,
)
from tests.conformance.feature_habits import (
    breaks_its_schema,
    calls_in_one_choice_of_two,
    calls_nothing,
    calls_twice,
    has_no_tools_after_all,
    is_no_json,
    keeps_a_call_to_itself,
    refuses_what_may_be_taken,
    writes_a_call,
)
from tests.conformance.stage import Habit

HABITS: Final[Mapping[str, tuple[Habit, frozenset[str]]]] = {
    habit.__name__: (habit, frozenset(about))
    for habit, about in (
        (breaks_its_schema, ["response_format"]),
        (is_no_json, ["response_format"]),
        (calls_twice, ["parallel_tool_calls"]),
        (calls_nothing, ["tool_choice", "tools"]),
        (calls_in_one_choice_of_two, ["n"]),
        (refuses_what_may_be_taken, ["response_format", "stream"]),
        (has_no_tools_after_all, ["tools", "messages", "n", "response_format"]),
        (keeps_a_call_to_itself, ["tools"]),
        (ends_for_a_reason_of_its_own, ["finish_reason"]),
        (ends_without_a_reason, ["finish_reason"]),
        (thinks_aloud, ["reasoning"]),
        (thinks_under_another_name, ["reasoning"]),
        (tells_of_itself, ["private"]),
        (tells_usage_elsewhere, ["usage"]),
        (fails_in_a_field, ["error"]),
        (writes_a_call, ["tools"]),
    )
}
"""Each with what it is about."""
