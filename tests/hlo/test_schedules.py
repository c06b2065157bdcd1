from __future__ import annotations

from pathlib import Path

import pytest

from commlens.hlo import in_schedule_order, is_scheduled, load

PROTOS = Path(__file__).resolve().parent.parent / "data" / "protos"
SCHEDULED = "jax-0.10.2.subaxis_reshape_8.after"


@pytest.mark.parametrize("form", ["txt", "pb"])
def test_a_compiled_module_has_a_schedule(form: str) -> None:
    """What XLA has compiled is scheduled, what it was given is not."""
    assert is_scheduled(load(PROTOS / f"{SCHEDULED}.{form}"))
    assert not is_scheduled(load(PROTOS / f"jax-0.10.2.nested_loops_2x4.before.{form}"))


def test_a_proto_runs_as_its_text_is_written() -> None:
    """Ids are in another order than the schedule; the text stands in the schedule's."""
    entries = [load(PROTOS / f"{SCHEDULED}.{form}").entry for form in ("txt", "pb")]
    assert None not in entries
    text, proto = (list(entry.instructions) for entry in entries if entry is not None)
    shown = [(instruction.opcode, str(instruction.shape)) for instruction in text]
    assert [(each.opcode, str(each.shape)) for each in proto] != shown
    for order in (proto, proto[::-1]):
        assert [(each.opcode, str(each.shape)) for each in in_schedule_order(order)] == shown
    assert in_schedule_order(text[::-1]) == text


def test_without_a_schedule_lists_are_all_there_is() -> None:
    """A proto without a schedule has the order of its ids; nothing has none."""
    entry = load(PROTOS / "jax-0.10.2.nested_loops_2x4.before.pb").entry
    assert entry is not None
    assert in_schedule_order(reversed(entry.instructions)) == list(entry.instructions)
    assert in_schedule_order([]) == []
