"""Names that several instructions or several computations of a module bear: XLA refuses such a proto.

No operand is in doubt, for ids lead to it. But an edit would make one more file that XLA refuses, and no report could
say by name which of them was edited.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from commlens.hlo.edits import EditError
from commlens.hlo.formatting import as_text
from commlens.hlo.proto.opcode_scan import encoded_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlens.hlo.proto.instruction import ProtoInstruction
    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloComputationOutline


def check_names(outlines: Sequence[HloComputationOutline], edited: Iterable[ProtoInstruction]) -> None:
    """Refuse instructions of which the name, or the name of their computation, is not theirs alone.

    One without a name bears none that another could have.

    Source: ``HloModule::CreateFromProto``, xla/hlo/ir/hlo_module.cc: the names of all computations must differ, and
    those of all instructions, in whichever computation they stand.

    Args:
        outlines: the module's computations.
        edited: instructions of the module.

    Raises:
        EditError: one of them is such.
    """
    homes = Counter(each.name for each in outlines)
    names = [list(encoded_names(each)) for each in outlines]
    seen = Counter(chain.from_iterable(names))
    for instruction in edited:
        number = instruction.computation.number
        home, name = outlines[number].name, names[number][instruction.position]
        if home and homes[home] > 1:
            msg = f"expected each computation to have a name of its own, found {homes[home]} of the name"
            msg += f" {as_text(home)}, one of them with {instruction.excerpt}"
            raise EditError(msg)
        if name and seen[name] > 1:
            others = [place for place, found in enumerate(names) if place != number and name in found]
            msg = f"expected each instruction of the module to have a name of its own, found {as_text(name)} in"
            msg += f" {as_text(home)} {'and in ' + as_text(outlines[others[0]].name) if others else 'twice'}"
            raise EditError(msg)
