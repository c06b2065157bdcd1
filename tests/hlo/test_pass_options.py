"""Constructors of passes and their string form take the same values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError
from commlens.hlo import Module, Pass, PassResult, parse_specs
from commlens.neuron import (
    NeuronAllGatherCombiner,
    NeuronAllReduceCombiner,
    NeuronReduceScatterCombiner,
    NeuronUniqueChannelIdEnforcer,
)


class Idle(Pass):
    """What all passes of these tests do."""

    __slots__ = ()

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Do nothing."""
        return PassResult(self.name, changed=False, modified=False, stats={"kept_going": keep_going}, module=module)


@dataclass(frozen=True, slots=True)
class Every(Idle):
    """A pass with every kind of option."""

    name: ClassVar[str] = "every"
    number: int = 7
    flag: bool = False
    word: Literal["auto", "off"] = "auto"


@dataclass(frozen=True, slots=True)
class Other(Idle):
    """A pass with a field that no text can set."""

    name: ClassVar[str] = "other"
    module: object = None
    items: list[int] = field(default_factory=list[int])
    number: int = 7


VALUES = (
    st.integers()
    | st.sampled_from([10**1000 - 1, 1 - 10**1000, 10**1000, -(10**1000)])
    | st.booleans()
    | st.sampled_from(["auto", "off", "on", "5", "true", "false", ""])
    | st.floats()
    | st.none()
    | st.just([1])
)


def as_text(value: object) -> str:
    """Return a value as a text of passes would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        digits = "9" * 1000 if abs(value) == 10**1000 - 1 else "1" + "0" * 1000
        return str(value) if abs(value) < 10**900 else ("-" if value < 0 else "") + digits
    return value if isinstance(value, str) else ""


def is_taken(option: str, value: object) -> bool:
    """Whether the string form takes a value: a text that reads back as this very value."""
    try:
        [one] = parse_specs(f"every{{{option}={as_text(value)}}}", {"every": Every})
    except CommlensError:
        return False
    read = getattr(one, option)
    return type(read) is type(value) and read == value


@given(st.sampled_from(["number", "flag", "word"]), VALUES)
def test_the_constructor_takes_what_the_text_takes(option: str, value: object) -> None:
    """Nothing more and nothing less; the error names the option and what it may be."""
    if is_taken(option, value):
        assert getattr(Every(**{option: value}), option) == value  # pyright: ignore[reportArgumentType]
    else:
        with pytest.raises(CommlensError, match=f"^expected {option} to be "):
            Every(**{option: value})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda: NeuronAllGatherCombiner(tp_group=False), "expected tp_group to be auto or off, found False", id="word"),  # pyright: ignore[reportArgumentType]
        pytest.param(lambda: NeuronReduceScatterCombiner(threshold_bytes="5"), "expected threshold_bytes to be an integer such as 1073741824, found '5'", id="int"),  # pyright: ignore[reportArgumentType]
        pytest.param(lambda: NeuronAllReduceCombiner(threshold_count=True), "expected threshold_count to be an integer such as 256, found True", id="bool-as-int"),
        pytest.param(lambda: NeuronUniqueChannelIdEnforcer(safe="false"), "expected safe to be True or False, found 'false'", id="bool"),  # pyright: ignore[reportArgumentType]
        pytest.param(lambda: NeuronUniqueChannelIdEnforcer(safe=1), "expected safe to be True or False, found 1", id="int-as-bool"),  # pyright: ignore[reportArgumentType]
        pytest.param(lambda: Every(number=10**5000), "expected number to be an integer such as 7, found one of more than 1000 digits", id="endless"),
    ],
)  # fmt: skip
def test_values_that_no_text_gives_are_refused(make: object, says: str) -> None:
    """The passes of the compiler check theirs, too."""
    assert callable(make)
    with pytest.raises(CommlensError) as caught:
        make()
    assert str(caught.value) == says


def test_fields_that_are_no_options_may_be_anything() -> None:
    """They are for who makes the pass; the options beside them are checked all the same."""
    assert Other(module=object(), items=[1, 2]).items == [1, 2]
    with pytest.raises(CommlensError, match="^expected number to be an integer"):
        Other(number=None)  # pyright: ignore[reportArgumentType]
