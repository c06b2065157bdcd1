"""One message of a log, asked of modules: the collectives that it can be about.

Where all that it says is true of some collectives, these are the answer. Else it is those whose ids are right, channel
and name and number, and something else is not; else those that have its devices, or its name, and another id.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final

from commlens.analysis.logs.answers import Candidate
from commlens.analysis.logs.payloads import fit_elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.logs.fits import Fits
    from commlens.analysis.logs.fitting import Fit, Match
    from commlens.analysis.logs.payloads import ElementsFit
    from commlens.analysis.logs.recognising import MessageKind, Recognised
    from commlens.analysis.logs.said import Said
    from commlens.analysis.logs.searching import Searched
    from commlens.analysis.row import Row

MOST_PARTIAL: Final = 100
"""Most collectives that are listed for a message of which not all is true of any."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a message.

    Attributes:
        candidates: the collectives that it can be about.
        is_cut: whether more than these are true in part, and nothing is in all.
    """

    candidates: Sequence[Candidate] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One message, asked of the modules.

    Attributes:
        position: its position among the messages.
        recognised: the message.
        searched: the modules.
        most_partial: most collectives that it lists where not all is true of any.
    """

    position: int
    recognised: Recognised
    searched: Sequence[Searched]
    most_partial: int

    @property
    def said(self) -> Said:
        """What the message says."""
        return self.recognised.said

    @property
    def asked(self) -> list[Searched]:
        """The modules that it can be about."""
        name = self.said.module
        return [each for each in self.searched if name is None or each.report.module.name == name]

    def found(self) -> Found:
        """Return the collectives it can be about: those that fit, else those that fit but for their ids."""
        if self.recognised.note is not None:
            return Found()  # what it names could not be read
        if self.recognised.own is not None:
            return Found([each for module in self.searched for each in self._of_kind(module, self.recognised.own)])
        asked = self.asked
        for search in self._searches():
            candidates = (each for module in asked for each in search.of(module))
            found = list(candidates if search.exactly else islice(candidates, self.most_partial))
            if found:
                return Found(found, is_cut=next(candidates, None) is not None)
        return Found()

    def _searches(self) -> Iterator[Search]:
        """Yield what to look for, the best answers first.

        A number that need not be a channel tells collectives apart where one bears it; where none does and nothing else
        is said of them, there is none.
        """
        said = self.said
        says_more = said.number is None or said.kind is not None or said.devices is not None
        for exactly, with_ids in ((True, True), (False, True), (False, False)):
            if said.number is not None:
                yield Search(self, exactly=exactly, with_ids=with_ids, by_number=True)
            if says_more:
                yield Search(self, exactly=exactly, with_ids=with_ids, by_number=False)

    def _of_kind(self, module: Searched, kind: MessageKind) -> Iterator[Candidate]:
        """Yield what a message of one kind of machine can be about."""
        alike = module.index.alike
        asked = [(each.signature, each.join.joined) for each in alike]
        found = kind.candidates(asked, module.num_devices, self.said.numbers or {})
        why = {position: words for place, words in found for position in alike[place].positions}
        fits = module.fits(self.said)
        for position in sorted(why):
            row = module.rows[position]
            match: Match = "unknown" if row.ids else "full"
            yield self.candidate(module, row, match, [why[position]], fits.of_row(position))

    def candidate(self, module: Searched, row: Row, match: Match, why: Iterable[str], fit: Fit | None) -> Candidate:
        """Return a row as an answer.

        Args:
            module: its module.
            row: the row.
            match: how it fits.
            why: what is true of it and what is not, in words; empty ones are left out.
            fit: how its devices fit.
        """
        return Candidate(
            self.position,
            match,
            module.report.module.path,
            module.report.module.name,
            row.name,
            row.opcode,
            row.line,
            "; ".join(part for part in why if part) or "the message does not say which collective it is about",
            row.axes,
            None if fit is None else fit.peers,
            row,
        )


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the rows that a message can be about.

    Attributes:
        question: the message.
        exactly: whether all that it says must be true of them, or only what picks them out.
        with_ids: whether the channel and the name that it says must be theirs.
        by_number: whether they must bear the number that it names.
    """

    question: Question
    exactly: bool
    with_ids: bool
    by_number: bool

    def of(self, module: Searched) -> Iterator[Candidate]:
        """Yield the rows of a module, in their order."""
        question, said = self.question, self.question.said
        fits = module.fits(said)
        named = {position: how for name in said.names or () for position, how in module.named(name).items()}
        for position in self._positions(module, fits, named):
            row = module.rows[position]
            fit = fits.of_row(position)
            number = _number_of(said, module, position) if self.by_number else ""
            if fit is None or not _is_of_kind(said, row) or (self.by_number and not number):
                continue
            elements = fit_elements(said, partial(module.index.payload, row.figures))
            ids = [*_wrong_ids(said, row, is_named=position in named)]
            if not self._holds(bool(fit.wrong or elements.wrong), bool(ids), is_named=position in named):
                continue
            why = [
                named.get(position, ""),
                *(fit.why, fit.wrong, elements.why, elements.wrong),
                *_true(said, row, number),
                *ids,
                *_as_written(row, fit),
            ]
            yield question.candidate(module, row, self._match(row, fit, elements), why, fit)

    def _holds(self, differs: bool, has_other_ids: bool, *, is_named: bool) -> bool:
        """Whether what is not true of a row leaves it an answer."""
        if (self.exactly and differs) or (self.with_ids and has_other_ids):
            return False
        said = self.question.said
        is_picked = self.exactly or _by_devices(said) or is_named
        return is_picked or (not has_other_ids and (self.by_number or said.channel is not None))

    def _match(self, row: Row, fit: Fit, elements: ElementsFit) -> Match:
        if not self.exactly:
            return "partial"
        sure = fit.match == "full" and elements.is_sure and self.question.recognised.doubt is None and not row.ids
        return "full" if sure else "unknown"

    def _positions(self, module: Searched, fits: Fits, named: dict[int, str]) -> Iterable[int]:
        """Return the rows to be looked at, ascending: those that bear the rarest fact of the message."""
        said = self.question.said
        fewest = min(self._bearing(module, named), key=len, default=range(len(module.rows)))
        if fits.asked is None:
            return fewest
        alike = fits.alike(said.opcode, has_channel=None if said.kind is None else said.kind == "cross_module")
        is_fewer = sum(len(each.positions) for each in alike) < len(fewest)
        return merge(*(each.positions for each in alike)) if is_fewer else fewest

    def _bearing(self, module: Searched, named: dict[int, str]) -> Iterator[Sequence[int]]:
        """Yield, for each fact that must be true of a row, the rows of which it is."""
        said, index = self.question.said, module.index
        is_picked = _by_devices(said)
        if said.opcode is not None:
            yield index.by_opcode.get(said.opcode, ())
        if said.kind is not None:
            yield index.by_kind.get(said.kind, ())
        if said.op_name is not None:
            yield index.by_op_name.get(said.op_name, ())
        if said.names is not None and (self.with_ids or not is_picked):
            yield sorted(named)
        if said.channel is not None and (self.with_ids or not (is_picked or said.names)):
            yield index.by_channel.get(said.channel, ())
        if self.by_number and said.number is not None and module.number != said.number:
            yield sorted({*module.numbered(said.number), *index.by_channel.get(said.number, ())})
        if self.exactly and said.elements_in is not None:
            yield index.with_elements("in", said.elements_in)
        if self.exactly and said.elements_out is not None:
            yield index.with_elements("out", said.elements_out)
        if not (self.exactly or self.by_number or is_picked or said.names) and said.channel is None:
            yield ()  # nothing picks a row out


def _by_devices(said: Said) -> bool:
    return said.devices is not None or said.groups is not None


def _is_of_kind(said: Said, row: Row) -> bool:
    """Whether operation, metadata and channel are of the kind that a message speaks of."""
    return (
        (said.opcode is None or row.opcode == said.opcode)
        and (said.op_name is None or row.op_name == said.op_name)
        and (said.kind is None or (said.kind == "cross_module") == row.figures.signature.has_channel)
    )


def _wrong_ids(said: Said, row: Row, *, is_named: bool) -> Iterator[str]:
    """Yield the ids of a row that are others than those a message names."""
    if said.names is not None and not is_named:
        yield f"its name is {row.name}, not {' or '.join(said.names)}"
    if said.channel is not None and row.channel_id != said.channel:
        has = "it has no channel" if row.channel_id is None else f"its channel is {row.channel_id}"
        yield f"{has}, not {said.channel}"


def _true(said: Said, row: Row, number: str) -> Iterator[str]:
    """Yield what a message says that is true of a row, apart from devices, elements and names."""
    if said.channel is not None and row.channel_id == said.channel:
        yield f"its channel is {said.channel}"
    elif said.channel is None and said.kind is not None:
        yield "it has a channel" if said.kind == "cross_module" else "it has no channel"
    if number:
        yield number
    if said.opcode is not None:
        yield f"it is {with_article(said.opcode)}"
    if said.op_name is not None:
        yield f"its op_name is {said.op_name}"


def _number_of(said: Said, module: Searched, position: int) -> str:
    """Say how a row comes to the number that a message names: by its channel, name or module; empty if it does not."""
    number = said.number
    if number is None:
        return ""
    if said.kind is None and module.rows[position].channel_id == number:
        return f"its channel is {number}"
    if position in module.numbered(number):
        return f"its name ends in {number}"
    return f"the number of its module is {number}" if module.number == number else ""


def _as_written(row: Row, fit: Fit) -> Iterator[str]:
    if row.ids and fit.why:
        yield "ids as written, for nobody states the counts"


def with_article(opcode: str) -> str:
    """Return an opcode with its article.

    Example:
        >>> with_article("all-reduce"), with_article("send")
        ('an all-reduce', 'a send')
    """
    return f"an {opcode}" if opcode.startswith("a") else f"a {opcode}"
