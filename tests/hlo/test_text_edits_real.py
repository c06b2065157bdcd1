"""Setting attributes in real modules, and whether XLA reads what it read before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.errors import CommlensError
from commlens.hlo import load_all
from commlens.hlo.edit_plan import AttributeChange
from commlens.hlo.text import TextModule
from commlens.hlo.text.attribute_edits import attribute_splices
from commlens.hlo.text.fast_edits import FastEditor
from commlens.hlo.text.splices import Splice
from text_edits import CHANNEL, STREAM, communicating, edited, edits_for, outside_is_equal, source
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's reader."""
    reader = XlaReader()
    yield reader
    reader.close()


@pytest.mark.corpus("public/*.hlo*", "public/*.txt*", "jax-*/*.txt*", "torch_xla-*/*.txt*")
def test_real_modules(corpus_file: Path) -> None:
    """Every communicating instruction of a real module is edited, and only it changes."""
    for module in load_all(corpus_file):
        if not isinstance(module, TextModule):
            continue
        assert module.edited([]) is module
        instructions = communicating(module)
        change = AttributeChange(987654321, {"stream_id": "0"})
        after = module.edited([edit for each in instructions for edit in edits_for(each, change)])
        again = communicating(after)
        assert [each.name for each in again] == [each.name for each in instructions]
        for each in again:
            assert (each.channel_id, each.frontend_attributes["stream_id"]) == (987654321, "0")
        assert outside_is_equal(module, after, [edit for each in instructions for edit in edits_for(each, change)])
        editor = FastEditor()
        for each in instructions[:50]:
            quick = editor.splices(each, change) if each.computation.starts is None else None
            if quick is not None:
                line, offset = each.parts, each.end - len(each.parts.text)
                found = attribute_splices(line, module.text[offset : each.end], change)
                assert quick == [Splice(start + offset, end + offset, put) for start, end, put in found]


def test_xla_reads_what_it_read_before(xla: XlaReader) -> None:
    """XLA takes every edited line that it took before, and sees the new values."""
    read = 0
    for case in (*STREAM, *CHANNEL):
        line = str(case.values[0])
        if not xla.reads(source(line)):
            continue
        read += 1
        printed = xla.printed(source(edited(line, stream="0", channel=12)))
        assert printed is not None, line
        assert 'stream_id="0"' in printed
        assert "channel_id=12" in printed
    assert read > 10


@pytest.mark.corpus
def test_xla_reads_edited_real_modules(corpus: Path, xla: XlaReader) -> None:
    """XLA takes every edited real module of a sample that it took before."""
    paths = sorted(path for path in corpus.glob("*/*.txt*") if path.stat().st_size < 20_000)[::12]
    read = 0
    for path in paths:
        try:
            modules = [module for module in load_all(path) if isinstance(module, TextModule)]
        except CommlensError:
            continue
        for module in modules[:2]:
            if not xla.reads(module.to_bytes()):
                continue
            change = AttributeChange(99, {"stream_id": "0"})
            edits = [edit for each in communicating(module) for edit in edits_for(each, change)]
            assert xla.reads(module.edited(edits).to_bytes()), path
            read += 1
    assert read > 10
