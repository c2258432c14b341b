"""What the tests of this folder share."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.conformance.expectations")
