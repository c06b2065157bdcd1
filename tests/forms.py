"""Lines of text in a module around them, and what is found there."""

from __future__ import annotations

from commlens.hlo.discovery import Discovery, discover
from commlens.hlo.text import TextModule, read_modules

HEAD = """plus {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

"""


def module(body: str, *, before: str = "", header: str = "HloModule m, replica_count=8") -> TextModule:
    """Wrap lines of an entry computation into a module with a reducer."""
    entry = f"ENTRY top {{\n  a = f32[8]{{0}} parameter(0)\n{body.rstrip()}\n}}\n"
    (found,) = read_modules(f"{header}\n\n{HEAD}{before}{entry}".encode())
    return found


def read(body: str, *, before: str = "") -> list[tuple[object, ...]]:
    """Return name, opcode, whether asynchronous, operand and result bytes and groups or pairs of what is found."""
    found = discover(module(body, before=before))
    assert found.unread == ()
    return [described(found, number) for number in range(len(found.sites))]


def described(found: Discovery, number: int) -> tuple[object, ...]:
    """Describe one site."""
    site = found.sites[number]
    signature = site.signature
    return (
        site.name,
        signature.opcode,
        signature.is_async,
        sum(shape.num_bytes or 0 for shape in signature.operand_shapes),
        sum(shape.num_bytes or 0 for shape in signature.result_shapes),
        str(signature.groups if signature.pairs is None else signature.pairs),
    )
