"""Finding the instructions of a few opcodes, and names that are free."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from commlens.hlo import load_all
from commlens.hlo.text import TextModule, read_modules

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """HloModule m

body {
  p = (f32[8]{0}, token[]) parameter(0)
  d = token[] send-done(p), channel_id=1
  ROOT send-done.3 = f32[8]{0} negate(d), metadata={op_name="send-done(x)"}
}

ENTRY %main {
  %a = f32[8]{0} parameter(0)
  %send-done = token[] after-all()
  %recv-done.1 = (f32[8]{0}, token[]) recv-done((f32[8]{0}, u32[], token[]) %a), channel_id=2
  %x = f32[8]{0} add(%send-done, %recv-done.1)
  ROOT %y = token[] send-done (%a), channel_id=1
}
"""
ODD = """HloModule m

ENTRY main {
  a = f32[8] parameter(0) // send-done(a)
  b = token[] /* recv-done(a) */
    send-done // here
    (a), channel_id=1
  c = f32[8] add(recv-done(a), b)
  d = token[] recv-done(a),
  channel_id=3
}
"""


def names(module: TextModule, *opcodes: str) -> list[str]:
    """Return the names of the instructions with these opcodes."""
    return [each.name for each in module.instructions_of(opcodes)]


def test_printed_text() -> None:
    """Opcodes are found, not names, operands or strings; in the order of the file."""
    (module,) = read_modules(TEXT.encode())
    assert names(module, "send-done") == ["d", "y"]
    assert names(module, "recv-done", "send-done") == ["d", "recv-done.1", "y"]
    assert names(module, "negate", "after-all", "parameter") == ["p", "send-done.3", "a", "send-done"]
    assert names(module, "send", "done", "recv") == names(module) == []


def test_odd_text() -> None:
    """Comments do not mislead, an instruction may take several lines or stand as an operand."""
    (module,) = read_modules(ODD.encode())
    assert names(module, "send-done", "recv-done") == ["b", "recv-done.anon", "d"]
    assert names(module, "add", "recv-done") == ["recv-done.anon", "c", "d"]


def test_lines_that_only_seem_printed() -> None:
    """An instruction of a printed line that goes on, or that holds two, is found."""
    text = "HloModule m\n\nENTRY main {\n  a = f32[8] parameter(0)\n  b = token[] send-done(a),\n  channel_id=1\n  c = f32[8] copy(a) d = token[] send-done(c)\n}\n"
    (module,) = read_modules(text.encode())
    assert names(module, "send-done") == ["b", "d"]
    assert [each.channel_id for each in module.instructions_of({"send-done"})] == [1, None]


def test_each_module_for_itself() -> None:
    """In a file of several modules, only what stands in this one is found."""
    modules = read_modules((TEXT + ODD).encode())
    assert [names(module, "send-done") for module in modules] == [["d", "y"], ["b"]]


@pytest.mark.corpus("public/*.hlo*", "public/*.txt*", "jax-*/*.txt*", "torch_xla-*/*.txt*")
def test_real_modules(corpus_file: Path) -> None:
    """What is found in a real module is what looking at every instruction finds."""
    opcodes = {"send-done", "recv-done", "send", "all-reduce", "add", "all-gather-done", "call", "tuple"}
    for module in load_all(corpus_file):
        if not isinstance(module, TextModule) or len(module.text) > 300_000:
            continue
        found = list(module.instructions_of(opcodes))
        every = [each for computation in module.computations for each in computation.instructions]
        assert found == [each for each in every if opcode_of(each) in opcodes]


def opcode_of(instruction: object) -> str:
    """Return an opcode; empty where none can be made out."""
    try:
        return str(instruction.opcode)  # pyright: ignore[reportAttributeAccessIssue]
    except ValueError:
        return ""


def test_fresh_names() -> None:
    """Names go on behind the largest number that stands anywhere in the module."""
    (module,) = read_modules(TEXT.encode())
    assert list(islice(module.fresh_names("send-done"), 3)) == ["send-done.4", "send-done.5", "send-done.6"]
    assert next(module.fresh_names("recv-done")) == "recv-done.2"
    assert next(module.fresh_names("all-reduce")) == "all-reduce.1"
    assert next(module.fresh_names("a.b")) == "a.b.1"
    other, last = read_modules((TEXT + TEXT.replace("done.3", "done.99999999999999999")).encode())
    assert next(other.fresh_names("send-done")) == "send-done.4"
    assert next(last.fresh_names("send-done")) == "send-done.100000000000000000"


def test_fresh_names_are_known_again() -> None:
    """What names were looked for behind a word is known of all its numbers; of no other name anything is said."""
    (module,) = read_modules(TEXT.encode())
    assert not module.is_fresh("send-done.4")
    assert next(module.fresh_names("send-done")) == "send-done.4"
    assert [module.is_fresh(f"send-done.{number}") for number in ("4", "400", "3", "0", "04", "-4", "", "\u0664")] == [
        True, True, *(False for _ in range(6))
    ]  # fmt: skip
    assert not any(map(module.is_fresh, ("recv-done.9", "send-done", "x.send-done.9", "")))
