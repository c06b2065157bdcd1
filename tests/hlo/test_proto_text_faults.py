"""What is said of a text form of a proto that protobuf's reader refuses: short, whatever stands there."""

from __future__ import annotations

import pytest

from commlens.errors import InputError, excerpt
from commlens.hlo import load

HEAD = 'name: "m" computations { name: "e" id: 1 '
INSTRUCTION = 'instructions {{ name: "a{}" opcode: "parameter" id: {} }} '
MANY = "".join(INSTRUCTION.format(number, number) for number in range(1, 100))
LONG = "9" * 5000


def refusal(text: str) -> InputError:
    """Return the error with which a text is refused."""
    with pytest.raises(InputError) as caught:
        load(text.encode())
    return caught.value


@pytest.mark.parametrize(
    ("text", "near", "fault"),
    [
        pytest.param(HEAD + INSTRUCTION.format("", "zz") + "}", "id: zz } }", "parse integer: zz", id="short"),
        pytest.param(HEAD + MANY + INSTRUCTION.format("", "zz") + "}", "id: zz } }", "parse integer: zz", id="end"),
        pytest.param(
            HEAD + INSTRUCTION.format("", "zz") + MANY + "}", "id: zz } instr", "parse integer: zz", id="begin"
        ),
        pytest.param(HEAD + INSTRUCTION.format("", LONG) + "}", "id: 999", "parse integer: 999", id="long-number"),
        pytest.param(HEAD + f"instructions {{ opcode: {'x' * 5000} }} }}", "opcode: xxx", "Expected string", id="word"),
        pytest.param(
            HEAD + f'\n  instructions {{ opcode: "{LONG}\n }} }}', 'opcode: "999', "missing ending", id="quote"
        ),
    ],
)
def test_a_fault_is_shown_with_what_stands_around_it(text: str, near: str, fault: str) -> None:
    """The place leads there; the sentence quotes a part of the line, and a part of a long value."""
    error = refusal(text)
    assert len(str(error)) < 350
    _, _, quoted = error.reason.partition("the text form of HloModuleProto cannot be read near ")
    shown, _, said = quoted.partition("': ")
    assert near in shown
    assert fault in said


def test_the_place_is_that_of_the_fault() -> None:
    """Line and column count in the whole text."""
    text = HEAD + "\n\n  " + INSTRUCTION.format("", "zz") + "}"
    error = refusal(text)
    assert (error.line, error.column) == (3, text.splitlines()[2].index("zz") + 1)


@pytest.mark.parametrize("at", [0, 1, 19, 20, 21, 60, 500, 940, 999, 1000, 5000])
def test_an_excerpt_holds_the_place(at: int) -> None:
    """It is a run of the text with the place in it, as long as asked, marked where something is left out."""
    text = "".join(chr(0x4E00 + number) for number in range(1000))
    shown = excerpt(text, at, most=60)
    begin = text.index(shown.strip("."))
    assert len(shown.strip(".")) == 60
    assert begin <= at < begin + 60 or at >= 1000
    assert (shown.startswith("..."), shown.endswith("...")) == (begin > 0, begin + 60 < 1000)


@pytest.mark.parametrize("length", [0, 1, 60])
def test_a_short_text_is_quoted_whole(length: int) -> None:
    """Wherever the place is."""
    assert {excerpt("x" * length, at) for at in (0, length // 2, length, 99)} == {"x" * length}
