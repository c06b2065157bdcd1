"""Collectives of a text that become custom calls: the exact lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import BecomeCustomCall
from text_combinations import CUSTOM_CALLS, HEAD, module_of

if TYPE_CHECKING:
    pass


@pytest.mark.parametrize(("before", "after"), CUSTOM_CALLS)
def test_custom_calls(before: str, after: str) -> None:
    """A collective becomes a custom call with the same name, shape, operands and foreign attributes."""
    module = module_of(f"{HEAD}  {before}\n}}\n")
    edit = BecomeCustomCall(module.instruction("x"), "T_f32", '{"a":[1]}')
    assert module.edited([edit]).to_bytes().decode() == f"{HEAD}  {after}\n}}\n"
    called = module.edited([edit]).instruction("x")
    assert (called.opcode, called.raw_attribute("custom_call_target")) == ("custom-call", "T_f32")
    assert called.raw_attribute("backend_config") == '{"a":[1]}'
