"""What exactly differs between two collectives, fact by fact, in words and as values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from commlens.analysis.meanings import STREAM
from commlens.hlo import shortened, some_of
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.figures import Figures
    from commlens.analysis.meanings import Meaning
    from commlens.analysis.row import Row
    from commlens.analysis.schedules import Step

_MOST_SHAPES: Final = 4


@dataclass(frozen=True, slots=True)
class Detail:
    """One fact that differs.

    Attributes:
        key: what it is.
        before: its value in the first module, as JSON holds it.
        after: its value in the second one.
        what: the same in words.
    """

    key: str
    before: object
    after: object
    what: str

    def as_dict(self) -> dict[str, object]:
        """Return the values in their JSON form."""
        return {"key": self.key, "before": self.before, "after": self.after}


def meaning_details(before: Meaning, after: Meaning) -> Iterator[Detail]:
    """Yield what two collectives do differently.

    Example:
        >>> from commlens.analysis import diff
        >>> from commlens.hlo import load
        >>> text = '''HloModule m, replica_count=4
        ... ENTRY e {{
        ...   p = f32[4] parameter(0)
        ...   ROOT g = f32[8] all-gather(p), replica_groups={{{}}}, dimensions={{0}}
        ... }}'''
        >>> before, after = (load(text.format(groups)) for groups in ("{0,1},{2,3}", "{2,3},{1,0}"))
        >>> diff(before, after).changes[0].what
        'members in another order: {{0,1},{2,3}} -> {{2,3},{1,0}}'
    """
    yield from _devices(before, after)
    yield from _shapes("operand_shapes", "operands", before.operand_shapes, after.operand_shapes)
    yield from _bytes("operand_bytes", "payload", before.operand_bytes, after.operand_bytes)
    if not (_keeps_shapes(before) and _keeps_shapes(after)):
        yield from _shapes("result_shapes", "results", before.result_shapes, after.result_shapes)
        yield from _bytes("result_bytes", "result", before.result_bytes, after.result_bytes)
    yield from _plain("dimension", "dimension", before.dimension, after.dimension)
    if before.reduction != after.reduction:
        first, second = (None if each is None else each.text for each in (before.reduction, after.reduction))
        same = ", which computes something else" if first == second else ""
        yield Detail("reduction", first, second, f"reduction {_said(first)} -> {_said(second)}{same}")
    if before.token_operands != after.token_operands:
        first, second = list(before.token_operands), list(after.token_operands)
        yield Detail("token_operands", first, second, f"operands that only order things: {first} -> {second}")
    yield from _plain("stream_id", "stream_id", before.stream, after.stream)


def lost_targets(before: Meaning, after: Meaning, added: Iterable[tuple[str, Meaning]]) -> Iterator[Detail]:
    """Yield what became of the pairs that a collective-permute has lost.

    A device that is no target of a collective-permute gets zeros from it (``collective-permute`` in
    https://openxla.org/xla/operation_semantics). Where the permute was split, others of its shape take pairs over.

    Args:
        before: what it did.
        after: what it does.
        added: names and meanings of the collectives that are new.
    """
    first, second = before.joined, after.joined
    if not isinstance(first, SourceTargetPairs) or not isinstance(second, SourceTargetPairs):
        return
    gone = set(first) - set(second)
    receiving = {target for _, target in second}
    for name, other in added if gone else ():
        if other.opcode == before.opcode and other.operand_shapes == before.operand_shapes:
            pairs = set(other.joined) if isinstance(other.joined, SourceTargetPairs) else set[tuple[int, int]]()
            receiving |= {target for _, target in pairs}
            taken = sorted(gone & pairs)
            if taken:
                words = some_of([f"{{{source},{target}}}" for source, target in taken])
                yield Detail("taken_over", None, name, f"{words} now in {name}")
    left = sorted({target for _, target in gone} - receiving)
    if left:
        who = some_of([str(device) for device in left])
        yield Detail("zeros", [], left, f"device {who} gets zeros" if len(left) == 1 else f"devices {who} get zeros")


def run_details(before: Step, after: Step) -> Iterator[Detail]:
    """Yield how two collectives differ in how often they run, and on which condition."""
    if before.runs != after.runs:
        runs = [times(before.runs), times(after.runs)]
        yield Detail("trip_count", before.runs, after.runs, f"runs {runs[0]} -> {runs[1]}")
    if before.conditional != after.conditional:
        words = ["in a branch of a conditional" if step.conditional else "always" for step in (before, after)]
        yield Detail("conditional", before.conditional, after.conditional, f"runs {words[0]} -> {words[1]}")


def place_detail(before: Step, after: Step) -> Detail:
    """Say that a collective stands in another part of the program."""
    first, second = before.computation, after.computation
    what = f"stands in {first} -> in {second}" if first != second else f"stands in {first}, which runs at another place"
    return Detail("computation", first, second, what)


def recall_detail(before: Step, after: Step) -> Detail:
    """Say that a collective stands in a computation that is called again at another place."""
    first, second = before.computation, after.computation
    return Detail("called_again", first, second, f"stands in {first}, which is called again at another place")


def loop_detail(before: int | None, after: int | None) -> Detail:
    """Say that a loop around a collective runs another number of times, which how often that runs does not show."""
    return Detail("loop_trip_count", before, after, f"the loop around it runs {times(before)} -> {times(after)}")


def spelling_details(before: Row, after: Row) -> Iterator[Detail]:
    """Yield how two collectives that do the same are written differently; names and places are none of it."""
    yield from figures_details(before.figures, after.figures)
    yield from _plain("channel_id", "channel", before.channel_id, after.channel_id)


def figures_details(before: Figures, after: Figures) -> Iterator[Detail]:
    """Yield how two collectives are written differently, apart from the number of their channel."""
    first, second = before.signature, after.signature
    if first.is_async != second.is_async:
        words = ["asynchronous" if each.is_async else "synchronous" for each in (first, second)]
        yield Detail("async", first.is_async, second.is_async, f"{words[0]} -> {words[1]}")
    yield from _plain("via", "found as", first.via, second.via)
    yield from _written("replica_groups", first.groups, second.groups)
    yield from _written("source_target_pairs", first.pairs, second.pairs)
    modes = [None if each.mode is None else str(each.mode) for each in (before, after)]
    yield from _plain("group_mode", "mode", *modes)
    yield from _plain(
        "use_global_device_ids", "use_global_device_ids", first.use_global_device_ids, second.use_global_device_ids
    )
    yield from _plain("constrain_layout", "constrain_layout", before.constrain_layout, after.constrain_layout)
    for key in sorted({*first.frontend_attributes, *second.frontend_attributes} - {STREAM}):
        values = (first.frontend_attributes.get(key), second.frontend_attributes.get(key))
        yield from _plain(f"frontend_attributes.{key}", f"attribute {key}", *values)


def _keeps_shapes(meaning: Meaning) -> bool:
    return meaning.operand_shapes == meaning.result_shapes


def _devices(before: Meaning, after: Meaning) -> Iterator[Detail]:
    if before.members == after.members:
        return
    what = "pairs" if before.is_paired and after.is_paired else "devices"
    if before.sets == after.sets:
        words = f"members in another order: {before.devices} -> {after.devices}"
        yield Detail("member_order", before.devices, after.devices, words)
        return
    known = before.axes is not None and after.axes is not None and before.axes != after.axes
    texts = [f"{each.devices}{_along(each.axes) if known else ''}" for each in (before, after)]
    yield Detail("participants", before.devices, after.devices, f"{what} {texts[0]} -> {texts[1]}")


def _along(axes: tuple[str, ...] | None) -> str:
    return f" along {','.join(axes or ()) or 'none'}"


def _shapes(key: str, what: str, before: tuple[str, ...], after: tuple[str, ...]) -> Iterator[Detail]:
    if before == after:
        return
    lost, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    words = f"{what} {listed_shapes(before)} -> {listed_shapes(after)}"
    if not lost and not new:
        words = f"{what} in another order: {listed_shapes(before)} -> {listed_shapes(after)}"
    elif not new:
        words += f" ({listed_shapes(tuple(lost.elements()))} lost)"
    elif not lost:
        words += f" ({listed_shapes(tuple(new.elements()))} new)"
    yield Detail(key, list(before), list(after), words)


def listed_shapes(shapes: Sequence[str]) -> str:
    """Name a few shapes, with equal neighbours counted.

    Args:
        shapes: shapes as HLO spells them.

    Example:
        >>> listed_shapes(["f32[8]", "f32[8]", "s8[1]"]), listed_shapes([])
        ('2 f32[8], s8[1]', 'none')
    """
    runs = [(shape, len([*equal])) for shape, equal in groupby(shapes)]
    words = [shape if count == 1 else f"{count} {shape}" for shape, count in runs[:_MOST_SHAPES]]
    rest = sum(count for _, count in runs[_MOST_SHAPES:])
    return ", ".join([*words, f"{rest:,} more"] if rest else words) or "none"


def _bytes(key: str, what: str, before: int | None, after: int | None) -> Iterator[Detail]:
    if before != after:
        sizes = ["unknown" if each is None else f"{each:,} B" for each in (before, after)]
        yield Detail(key, before, after, f"{what} {sizes[0]} -> {sizes[1]}")


def _plain(key: str, what: str, before: object, after: object) -> Iterator[Detail]:
    if before != after:
        yield Detail(key, before, after, f"{what} {_said(before)} -> {_said(after)}")


def _written(key: str, before: object, after: object) -> Iterator[Detail]:
    """Yield a difference in the text of groups or pairs, with the attribute as its name."""
    first, second = (None if each is None else str(each) for each in (before, after))
    if first != second:
        yield Detail(key, first, second, f"{key} {_said(first)} -> {_said(second)}")


def _said(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return shortened(value)


def times(runs: int | None) -> str:
    """Say how often something runs.

    Example:
        >>> times(1), times(1000), times(None)
        ('once', '1,000 times', 'an unknown number of times')
    """
    if runs is None:
        return "an unknown number of times"
    return "once" if runs == 1 else f"{runs:,} times"
