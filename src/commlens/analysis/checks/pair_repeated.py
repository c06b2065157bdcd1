"""A device that sends, or receives, twice in one permute."""

from __future__ import annotations

from functools import partial
from typing import Final

from commlens.analysis.checks.queries import sites_with
from commlens.hlo import Example, Rule

RULE: Final = Rule(
    id="pair-repeated",
    severity="error",
    title="A device sends or receives twice in one permute",
    documentation=(
        "A source or a target stands in several source-target pairs of one instruction. A device sends its value to "
        "one other and gets one value; with two the result would depend on which comes last, and XLA refuses the "
        "pairs. The in-place form, which writes slices into an operand, is left out: there it is allowed. Use several "
        "permutes, or a collective-broadcast for one value that goes to many."
    ),
    source="CheckSourceTargetPairs, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, num_partitions=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{0,2},{1,3}}
}
"""),
    good=Example("""HloModule example, num_partitions=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}
}
"""),
    find=partial(sites_with, rule="pair-repeated"),
)
