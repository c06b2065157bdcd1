"""Whole modules through the combiners, held against a twin that reads what was written down about every collective."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from combiner_modules import KINDS, WIDE, combined, entry, line, run
from proto_twin import load_as
from twins_combiner import Op, sets

GROUPS = {
    "{{0,1},{2,3}}": ((0, 1), (2, 3)),
    "[2,2]<=[4]": ((0, 1), (2, 3)),
    "{{0,2},{1,3}}": ((0, 2), (1, 3)),
    "[2,2]<=[2,2]T(1,0)": ((0, 2), (1, 3)),
    "{{1,0},{2,3}}": ((1, 0), (2, 3)),
    "{{0,1,2,3}}": ((0, 1, 2, 3),),
}
ROOTS = {"add": "add", "plus": "add", "times": "multiply", "minus": "subtract", "wide": None}
MANY = settings(max_examples=max(300, settings().max_examples))


@dataclass
class Collective:
    """One collective as it is written down."""

    name: str
    operand: str
    groups: str
    reducer: str
    element_type: str
    size: int
    channel: bool
    group_key: str
    control: str
    constrained: bool

    def text(self, kind: str) -> str:
        """Return its line."""
        changes = {"shape": f"{self.element_type}[{self.size}]", "replica_groups": self.groups}
        if kind != "all-gather":
            changes["to_apply"] = self.reducer
        if self.channel:
            changes |= {"channel_id": "5", "use_global_device_ids": "true"}
        if self.group_key:
            changes["frontend_attributes"] = f'{{collective_group_key="{self.group_key}"}}'
        if self.control:
            changes["control_predecessors"] = f"{{{self.control}}}"
        if self.constrained:
            changes["constrain_layout"] = "true"
        return f"{self.name} = {line(kind, self.operand, **changes)}"


@dataclass
class Step:
    """What is written down about a module."""

    kind: str
    collectives: list[Collective]
    shown: str
    used: bool
    options: dict[str, Any]

    def text(self) -> str:
        """Return the module; a reduce-scatter of a dot shows the groups of tensor parallelism, where there is one."""
        lines = ["d = f32[8] dot(p, q)"]
        if self.shown:
            lines.append(f"r = {line('reduce-scatter', 'd', replica_groups=self.shown)}")
        for each in self.collectives:
            lines += [each.text(self.kind), f"s{each.name} = f32[8] negate({each.name})"]
        return entry(*lines, before=WIDE, root="" if self.used else "negate(p)")

    def expected(self) -> list[list[str]]:
        """Return the sets, by the rules one after the other."""
        if any(each.constrained for each in self.collectives):
            return []
        ops = [Op("p", []), Op("q", []), Op("d", ["p", "q"])]
        if self.shown:
            ops.append(self.scatter_of_dot())
        for each in self.collectives:
            control = [each.control] if each.control else []
            ops.append(Op(each.name, [each.operand], control, self.key(each), 4 * each.size))
            ops.append(Op(f"s{each.name}", [each.name]))
        ops.append(Op("t", [op.name for op in ops[2:]] if self.used else ["p"]))
        return sets(ops, self.options["threshold_bytes"], self.options["threshold_count"])

    def scatter_of_dot(self) -> Op:
        """Return what shows the groups; for one combiner it is a collective like the others."""
        scatter = Collective("r", "d", self.shown, "add", "f32", 4, False, "", "", False)
        return Op("r", ["d"], [], self.key(scatter) if self.kind == "reduce-scatter" else None, 16)

    def key(self, each: Collective) -> object:
        """Return what a collective shares with others that it may join; None where there are none."""
        filtered = self.kind != "all-reduce" and self.shown and self.options["tp_group"] == "auto"
        if filtered and GROUPS[each.groups] != GROUPS[self.shown]:
            return None
        key: list[object] = [GROUPS[each.groups], each.channel, each.group_key]
        if not self.options["mixed_dtypes"]:
            key.append(each.element_type)
        if self.kind != "all-gather":
            leads = any(other.control == each.name for other in self.collectives)
            known = each.reducer != "minus" or self.kind == "all-reduce"
            if each.control or leads or not known or ROOTS[each.reducer] is None:
                return None
            key.append(ROOTS[each.reducer])
        return tuple(key)


def step_of(random: Random, kind: str) -> Step:
    """A module whose collectives differ in little."""
    odd = random.choice([0.05, 0.2])
    sources, made = ["p", "q"], list[Collective]()
    for number in range(random.randint(2, 8)):
        name = f"x{number}"
        made.append(
            Collective(
                name,
                random.choice(sources[-3:] if random.random() < 0.3 else sources[:2]),
                random.choice(list(GROUPS)[: random.choice([2, 2, 6])]),
                random.choice(["add", "plus"] if random.random() > odd else list(ROOTS)),
                "f32" if random.random() > odd else "s32",
                random.choice([1, 2, 4]),
                random.random() < odd,
                "k" if random.random() < odd else "",
                random.choice([each.name for each in made]) if made and random.random() < odd / 2 else "",
                random.random() < 0.01,
            )
        )
        sources.append(f"s{name}")
    options: dict[str, Any] = {
        "threshold_bytes": random.choice([1 << 30, 32, 8, 0, -1] if random.random() < 0.3 else [1 << 30]),
        "threshold_count": random.choice([256, 3, 2, 1, 0, -7] if random.random() < 0.3 else [256]),
        "mixed_dtypes": random.random() < 0.3,
        "tp_group": random.choice(["auto", "off"]),
    }
    shown = random.choice([*GROUPS]) if random.random() < 0.3 else ""
    return Step(kind, made, shown, random.random() < 0.7, options)


@MANY
@given(st.randoms(use_true_random=True), st.sampled_from(KINDS), st.sampled_from(["text", "proto"]))
def test_sets_of_modules_are_those_of_the_twin(random: Random, kind: str, backend: str) -> None:
    """Keys, the filter, thresholds and their signs, layout constraints and the order, from text to sets."""
    step = step_of(random, kind)
    options = dict(step.options)
    if kind == "all-reduce":
        del options["tp_group"]
    assert combined(run(kind, load_as(step.text(), backend), **options)) == step.expected()
