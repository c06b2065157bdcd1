from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.topology.group_modes import (
    CollectiveOpGroupMode,
    get_collective_op_group_mode,
    group_mode_for_opcode,
    use_global_device_ids_for,
)
from xla_cases import cases

NAMES = {
    0: ("kCrossReplica", "cross_replica"),
    1: ("kCrossPartition", "cross_partition"),
    2: ("kCrossReplicaAndPartition", "cross_replica_and_partition"),
    3: ("kFlattenedID", "flattened_id"),
}


@pytest.mark.parametrize(("given_flags", "expect"), cases("group_mode"))
def test_mode_by_flags_is_upstreams(given_flags: dict[str, Any], expect: str) -> None:
    """Channel and flag decide the mode as upstream has it."""
    assert get_collective_op_group_mode(**given_flags).snake == expect


@pytest.mark.parametrize(("instruction", "expect"), cases("group_mode_for_opcode"))
def test_mode_by_opcode_is_upstreams(instruction: dict[str, Any], expect: str) -> None:
    """The opcode says whether the flag has a value; opcodes without a mode are refused."""
    if expect == "error":
        with pytest.raises(ValueError, match="has a group mode"):
            group_mode_for_opcode(**instruction)
    else:
        assert group_mode_for_opcode(**instruction).snake == expect


def test_flag_without_channel_has_the_documented_text() -> None:
    """The forbidden combination is refused in upstream's words."""
    with pytest.raises(ValueError, match="Invalid combination of has_channel_id and use_global_device_ids"):
        get_collective_op_group_mode(has_channel_id=False, use_global_device_ids=True)


@pytest.mark.parametrize("value", NAMES)
def test_names_and_numbers(value: int) -> None:
    """Numbers are the proto's; str, format and snake give the names of upstream's sources, old and new."""
    mode = CollectiveOpGroupMode(value)
    assert (str(mode), mode.snake) == NAMES[value]
    assert f"{mode}" == NAMES[value][0]
    assert mode == value
    assert pickle.loads(pickle.dumps(mode)) is mode  # noqa: S301 - our own bytes


@pytest.mark.parametrize("value", NAMES)
@pytest.mark.parametrize("spelling", ["{camel}", "{snake}", "{upper}", "COLLECTIVE_OP_GROUP_MODE_{upper}"])
def test_all_spellings_are_read(value: int, spelling: str) -> None:
    """Input takes the C++ name, the snake name and the names of the proto enum."""
    camel, snake = NAMES[value]
    text = spelling.format(camel=camel, snake=snake, upper=snake.upper())
    assert CollectiveOpGroupMode.parse(text) is CollectiveOpGroupMode(text) is CollectiveOpGroupMode(value)


@given(st.text().filter(lambda text: not any(text in names for names in NAMES.values())))
def test_other_texts_are_refused_with_the_choices(text: str) -> None:
    """A text that names no mode is an error that lists the modes."""
    with pytest.raises(ValueError, match="kCrossReplicaAndPartition or cross_replica_and_partition"):
        CollectiveOpGroupMode.parse(text)


@pytest.mark.parametrize(
    ("opcode", "stated", "effective"),
    [
        ("all-gather", None, False),
        ("all-gather-start", True, True),
        ("all-reduce", False, False),
        ("all-reduce-start", None, False),
        ("reduce-scatter", None, False),
        ("all-to-all", None, None),
        ("all-to-all", True, None),
        ("ragged-all-to-all", None, None),
        ("collective-broadcast", None, None),
        ("collective-permute", None, None),
        ("collective-permute-start", None, None),
    ],
)
def test_absence_of_the_flag_belongs_to_the_opcode(opcode: str, stated: bool | None, effective: bool | None) -> None:
    """An absent flag is false on some opcodes and no flag at all on the others."""
    assert use_global_device_ids_for(opcode, stated) is effective


@pytest.mark.parametrize("opcode", ["send", "recv", "all-gather-done", "add", "cross-replica-sum", ""])
def test_opcodes_without_a_mode_are_refused(opcode: str) -> None:
    """Opcodes that are no collectives have no mode."""
    with pytest.raises(ValueError, match=f"found {opcode!r}"):
        use_global_device_ids_for(opcode, None)
