"""Hearing a log: its messages, each once, the first and the last of very many."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.logs.recognising import Listener, Recognised
    from commlens.analysis.logs.records import Record

_EXCERPT: Final = 400
_MOST_TEXTS: Final = 4096
_LONGEST_TEXT: Final = 4096

_VARYING: Final = re.compile(
    r"[IWEF]\d{4} \d\d:\d\d:\d{2,20}(?:\.\d{1,9})?(?:\s{1,8}\d{1,9}(?= ))?"
    r"|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|\brun_id=(?:RunId: ?)?\d{1,20}|\[id=\d{1,20}\]"
)
"""Times, threads and runs: what makes the text of a message another one and says nothing of a collective."""

_Key: TypeAlias = "tuple[object, ...]"


@dataclass(slots=True)
class Heard:
    """A message and how often it was heard.

    Attributes:
        line: the line on which it stood first.
        text: the beginning of its text there.
        recognised: the message.
        ranks: who printed it.
        count: how often it stood there.
    """

    line: int
    text: str
    recognised: Recognised
    ranks: set[int] = field(default_factory=set[int])
    count: int = 0


class Hearing:
    """The messages of a log.

    Of more different messages than are kept the first half stay, and the last half of those behind them: what a job
    printed when it hung stands at the end. One that is dropped and comes again counts as another one.

    Args:
        most: most different messages that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most // 2
        self._first: dict[_Key, Heard] = {}
        self._last: dict[_Key, Heard] = {}
        self.left_out = 0

    def take(self, key: _Key, recognised: Recognised, record: Record) -> None:
        """Take down a message.

        Args:
            key: what is equal for equal messages.
            recognised: the message.
            record: where it stands.
        """
        heard = self._first.get(key)
        if heard is None:
            heard = self._last.pop(key, None) or Heard(record.line, record.text[:_EXCERPT], recognised)
            if len(self._first) < self._most:
                self._first[key] = heard
            else:
                self._last[key] = heard
        heard.count += 1
        if recognised.said.rank is not None:
            heard.ranks.add(recognised.said.rank)
        if len(self._last) > self._most:
            self.left_out += self._last.pop(next(iter(self._last))).count

    def messages(self) -> list[Heard]:
        """Return what was kept, in the order of the log."""
        return sorted([*self._first.values(), *self._last.values()], key=lambda each: each.line)


def hear(records: Iterator[Record], listener: Listener, most: int) -> Hearing:
    """Take down the messages of a log, each once.

    A text that comes again but for times and numbers of threads and runs is recognised once.

    Args:
        records: the records of the log.
        listener: what to listen for.
        most: most different messages that are kept.
    """
    hearing = Hearing(most)
    known: dict[str, list[tuple[_Key, Recognised]]] = {}
    for record in records:
        text = _VARYING.sub("", record.text) if len(record.text) <= _LONGEST_TEXT else None
        found = None if text is None else known.get(text)
        if found is None:
            recognised = listener.messages(record.text)
            found = [((each.kind, each.note, each.doubt, *each.said.key), each) for each in recognised]
            if text is not None:
                if len(known) >= _MOST_TEXTS:
                    known.clear()
                known[text] = found
        for key, each in found:
            hearing.take(key, each, record)
    return hearing
