"""Everything in a module that communicates: each thing once, and what could not be read beside it.

A collective may hide: in the computation that an async-start wraps, in a custom fusion that stands for a
reduce-scatter, in a custom call. Here those forms become what they are. Text and proto take the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commlens.hlo.callgraph import CallGraph
from commlens.hlo.collectives import is_collective, payload, signature_of
from commlens.hlo.custom_calls import custom_call_opcode, custom_call_signature
from commlens.hlo.model import Unread, UnreadableError
from commlens.hlo.shapes import array_leaves
from commlens.hlo.signature import InstructionSite, Site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.hlo.model import Call, Computation, Instruction, Module
    from commlens.hlo.signature import Signature

ALL_REDUCE_SCATTER = "all-reduce-scatter"
"""How a row says that its reduce-scatter was written as a custom fusion of all-reduce and dynamic-slice."""


@dataclass(frozen=True, slots=True, eq=False)
class Discovery:
    """What communicates in a module.

    Attributes:
        sites: every communicating place once, computation by computation in file order.
        unread: what may communicate and could not be read, and faults of the module's structure.
        call_graph: how often the computations of the sites run.
    """

    sites: tuple[Site, ...]
    unread: tuple[Unread, ...]
    call_graph: CallGraph


def discover(module: Module) -> Discovery:
    """Find everything that communicates.

    Args:
        module: a module from text or proto.

    Returns:
        Sites in row order, unread items in file order, and the call graph of the sites' computations.
    """
    found = _Finder(module)
    for computation, items in module.communication():
        found.look_at(computation, items)
    return found.finish()


class _Finder:
    """Collects what communicates, computation by computation."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._items: dict[str, list[Site | Instruction]] = {}
        self._unread: list[Unread] = []
        self._own_rows: set[tuple[str, str, str]] = set()

    def look_at(self, computation: Computation, items: Iterable[Site | Instruction]) -> None:
        """Read what can be read on its own, keep what depends on other computations for later."""
        kept: list[Site | Instruction] = []
        for item in items:
            if isinstance(item, Site):
                kept.append(item)
            else:
                kept += self._read(item)
        if kept:
            self._items.setdefault(computation.name, []).extend(kept)

    def _read(self, item: Instruction) -> list[Site | Instruction]:
        try:
            opcode = item.opcode
            if opcode in ("async-start", "fusion"):
                return [item]
            if opcode in ("custom-call", "custom-call-start"):
                return self._custom_call(item)
            if not is_collective(opcode):
                return []
            return [InstructionSite(item, signature_of(item), item.channel_id)]
        except UnreadableError as error:
            self._unread.append(unread_item(item, str(error)))
            return []

    def _custom_call(self, item: Instruction) -> list[Site | Instruction]:
        named = custom_call_opcode(item.raw_attribute("custom_call_target") or "")
        if named is None:
            return []
        if item.opcode == "custom-call-start":
            msg = "expected a collective written as a plain custom call, found one that is started asynchronously"
            raise UnreadableError(msg)
        signature, channel_id = custom_call_signature(item, named[0], start=named[1])
        return [InstructionSite(item, signature, channel_id)]

    def finish(self) -> Discovery:
        """Resolve what depends on other computations."""
        self._resolve_fusions()
        self._resolve_async()
        graph = CallGraph(self._module, self._items, self._is_own_row)
        wrapped = {callee for _, _, callee in self._own_rows if not graph.calls_of(callee)}
        sites = tuple(
            site
            for name, items in self._items.items()
            if name not in wrapped
            for site in items
            if isinstance(site, Site)
        )
        unread = (*self._unread, *_unread_callers(graph), *self._module.structure_faults)
        return Discovery(sites, unread, graph)

    def _only_site(self, name: str) -> Site | None:
        """Return the one thing that communicates in a computation, None where there is none or more."""
        sites = [item for item in self._items.get(name, []) if isinstance(item, Site)]
        return sites[0] if len(sites) == 1 else None

    def _is_own_row(self, call: Call) -> bool:
        """Whether a call site has a row of its own, so that what it runs is not counted at its own line."""
        if call.role == "unreadable":
            return False
        return (call.caller.computation.name, call.caller.name, call.callee) in self._own_rows

    def _own(self, caller: Instruction, callee: str) -> None:
        self._own_rows.add((caller.computation.name, caller.name, callee))

    def _resolve_async(self) -> None:
        """Turn every async-start over one collective into a site of its own, wrapped ones first."""
        pending = {
            name: {position: item for position, item in enumerate(items) if not isinstance(item, Site)}
            for name, items in self._items.items()
        }
        entered: set[str] = set()
        for outermost in self._items:
            stack = [outermost]
            while stack:
                name = stack[-1]
                starts = pending.get(name, {})
                if name in entered or not starts:
                    stack.pop()
                    for position, start in pending.pop(name, {}).items():
                        self._resolve_start(name, position, start)
                else:
                    entered.add(name)
                    stack += [callee for start in starts.values() for role, callee in start.called if role == "async"]

    def _resolve_start(self, name: str, position: int, start: Instruction) -> None:
        """Put the site of an async-start in its place, if it is one."""
        site = self._async_site(start) if start.opcode == "async-start" else None
        if site is not None:
            self._items[name][position] = site

    def _async_site(self, start: Instruction) -> Site | None:
        callee = next((name for role, name in start.called if role == "async"), None)
        if callee is None or self._module.computation(callee) is None:
            why = "expected calls= to name a computation of the module" + (
                "" if callee is None else f", found {callee}"
            )
            self._unread.append(unread_item(start, why))
            return None
        if callee == start.computation.name:
            why = f"expected calls= to name another computation, found {callee}, in which it stands itself"
            self._unread.append(unread_item(start, why))
            return None
        inner = self._only_site(callee)
        if inner is None:
            return None
        attributes = {**inner.signature.frontend_attributes, **start.frontend_attributes}
        self._own(start, callee)
        signature = replace(inner.signature, is_async=True, frontend_attributes=attributes)
        return InstructionSite(start, signature, inner.channel_id)

    def _resolve_fusions(self) -> None:
        """Turn every custom fusion of all-reduce and dynamic-slice by partition into a reduce-scatter."""
        bodies: dict[str, Site] = {}
        for name in self._items:
            site = self._only_site(name)
            if site is not None and site.signature.opcode == "all-reduce" and self._is_scatter(name, site):
                bodies[name] = site
        found: dict[str, dict[Instruction, Site]] = {}
        for call in self._module.callers(bodies.keys()) if bodies else ():
            if call.role == "fusion" and call.caller.raw_attribute("kind") == "kCustom":
                site = self._fusion_site(call, bodies[call.callee])
                if site is not None:
                    found.setdefault(call.caller.computation.name, {})[call.caller] = site
        for name, sites in found.items():
            self._place(name, sites)
        if found:
            order = {computation.name: number for number, computation in enumerate(self._module.computations)}
            self._items = dict(sorted(self._items.items(), key=lambda entry: order.get(entry[0], len(order))))

    def _place(self, name: str, sites: dict[Instruction, Site]) -> None:
        """Put the sites of fusions among the others of their computation."""
        written = self._items.get(name, [])
        items = [item if isinstance(item, Site) else sites.pop(item, item) for item in written]
        if sites:
            items = sorted([*items, *sites.values()], key=lambda item: item.line or 0)
        self._items[name] = items

    def _is_scatter(self, name: str, reduced: Site) -> bool:
        """Whether a computation slices, by partition or replica, what its all-reduce gives."""
        computation = self._module.computation(name)
        if computation is None:
            return False
        opcodes = [outline for each in computation.instructions if (outline := _outline(each)) is not None]
        by_device = any(opcode in ("partition-id", "replica-id") for opcode, _ in opcodes)
        return by_device and any(opcode == "dynamic-slice" and reduced.name in operands for opcode, operands in opcodes)

    def _fusion_site(self, call: Call, reduced: Site) -> Site | None:
        """Return the site of a custom fusion that stands for a reduce-scatter."""
        try:
            signature = _scattered(call.caller, reduced.signature)
        except UnreadableError as error:
            self._unread.append(unread_item(call.caller, str(error)))
            return None
        self._own(call.caller, call.callee)
        return InstructionSite(call.caller, signature, reduced.channel_id)


def _outline(instruction: Instruction) -> tuple[str, tuple[str, ...]] | None:
    """Return an instruction's opcode and operands, None where they cannot be read."""
    try:
        return instruction.opcode, instruction.operand_names
    except UnreadableError:
        return None


def _scattered(fusion: Instruction, reduced: Signature) -> Signature:
    """Return the reduce-scatter that a fusion of all-reduce and slice is: its groups, with the fusion's shapes."""
    operands = array_leaves(fusion.operand_shapes())
    is_start = fusion.opcode.endswith("-start")
    results = payload(fusion.shape, "fusion", is_start).arrays()
    dimensions: tuple[int, ...] | None = None
    if len(reduced.result_shapes) == len(results) == 1:
        before, after = reduced.result_shapes[0].dimensions, results[0].dimensions
        if len(before) == len(after):
            dimensions = tuple(d for d, (whole, part) in enumerate(zip(before, after, strict=True)) if whole != part)
    return replace(
        reduced,
        opcode="reduce-scatter",
        is_async=reduced.is_async or is_start,
        operand_shapes=operands,
        result_shapes=results,
        dimensions=dimensions[:1] if dimensions else None,
        via=ALL_REDUCE_SCATTER,
        frontend_attributes={**reduced.frontend_attributes, **fusion.frontend_attributes},
    )


def unread_item(instruction: Instruction, why: str) -> Unread:
    """Describe an instruction that could not be read."""
    line = instruction.line
    where = f"computation {instruction.computation.name}" if line is None else str(line)
    name, opcode = (_known(instruction, "name"), _known(instruction, "opcode"))
    return Unread(where, instruction.excerpt, why, name, opcode)


def _unread_callers(graph: CallGraph) -> Iterator[Unread]:
    """Describe the instructions that call a computation in which something communicates and cannot be read."""
    for caller in graph.unreadable_callers():
        try:
            _ = caller.called
        except UnreadableError as error:
            yield unread_item(caller, str(error))


def _known(instruction: Instruction, attribute: str) -> str | None:
    try:
        return str(getattr(instruction, attribute))
    except UnreadableError:
        return None
