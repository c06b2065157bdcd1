"""What members of a combined collective differ in: what the warnings and the table say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from combiner_modules import KINDS, both, entries, entry, line, run
from proto_twin import load_as

if TYPE_CHECKING:
    from commlens import Module
    from commlens.hlo import PassResult


def sets_of(kind: str, *sets: tuple[str, str], backend: str = "text") -> Module:
    """Return a module in which pairs of collectives become one each; of a pair stands there what its members say."""
    lines = [
        f"{name}{number} = {line(kind)}, channel_id=1, {said}".rstrip(", ").replace(
            "KEY", f'collective_group_key="{number}"'
        )
        for number, members in enumerate(sets)
        for name, said in zip("xy", members, strict=True)
    ]
    return load_as(entry(*lines), backend)


def frontend(*pairs: str) -> str:
    """Return frontend attributes beside the one that keeps sets apart."""
    return f"frontend_attributes={{{','.join((*pairs, 'KEY'))}}}"


def said(result: PassResult) -> list[str]:
    """Return the facts about what was left out."""
    return [fact for fact in result.facts if "left out" in fact]


@both
@pytest.mark.parametrize("kind", KINDS)
def test_what_agrees_is_no_loss(kind: str, backend: str) -> None:
    """Nothing is said where members say the same, or nothing."""
    same = frontend('a="1"') + ', metadata={op_name="x"}, backend_config={"n":1}'
    result = run(kind, sets_of(kind, (same, same), (frontend(), frontend()), backend=backend))
    assert len(entries(result, "combined")) == 2
    assert result.warnings == ()
    assert said(result) == []


@both
@pytest.mark.parametrize("kind", KINDS)
def test_each_set_has_one_sentence_with_all_that_it_lost(kind: str, backend: str) -> None:
    """Frontend attributes and others by their names; values only of what later passes look for."""
    lost = (
        frontend('a="1"', 'stream_id="0"') + ', backend_config={"n":1}',
        frontend('a="2"', 'b="1"') + ', backend_config={"n":2}',
    )
    result = run(kind, sets_of(kind, lost, backend=backend))
    sentence = f'{kind}.1 lacks stream_id ("0", none), a, b and backend_config, in which its members differ'
    assert result.warnings == (sentence,)
    assert said(result) == ["attributes that differed left out in 1 set (a, b, backend_config and stream_id)"]


@both
def test_metadata_is_counted_and_is_no_warning(backend: str) -> None:
    """It differs in nearly every set, and members keep theirs: one fact for all sets names the fields."""
    pairs = [
        (f'{frontend()}, metadata={{op_name="a{number}"}}', f'{frontend()}, metadata={{op_name="b"}}')
        for number in range(3)
    ]
    same = f'{frontend()}, metadata={{op_name="c"}}'
    result = run("all-gather", sets_of("all-gather", *pairs, (same, same), backend=backend))
    assert len(entries(result, "combined")) == 4
    assert result.warnings == ()
    assert said(result) == ["metadata that differed left out in 3 sets (op_name)"]


def test_fields_of_metadata_are_named_once_for_all_sets() -> None:
    """Whichever sets they differ in."""
    fields = [("op_name", '"a"', '"b"'), ("source_line", "1", "2"), ("source_line", "3", "4")]
    pairs = [tuple(f"{frontend()}, metadata={{{key}={value}}}" for value in values) for key, *values in fields]
    result = run("all-gather", sets_of("all-gather", *((first, second) for first, second in pairs)))
    assert said(result) == ["metadata that differed left out in 3 sets (op_name and source_line)"]


def test_lost_streams_are_told_first() -> None:
    """The screen shows only so many warnings; the order of the sets stays otherwise."""
    plain, streams = (frontend('a="1"'), frontend()), (frontend('stream_id="1"'), frontend('stream_id="2"'))
    result = run("all-gather", sets_of("all-gather", plain, streams, plain, streams))
    assert [each["name"] for each in entries(result, "combined")] == [f"all-gather.{number}" for number in (1, 2, 3, 4)]
    assert [sentence.split()[0][-1] for sentence in result.warnings] == ["2", "4", "1", "3"]
    assert [" lacks stream_id " in sentence for sentence in result.warnings] == [True, True, False, False]


def test_a_long_list_is_cut() -> None:
    """However many attributes there are, and however long a word is."""
    many = tuple(frontend(*(f'k{key}="{number}"' for key in range(12))) for number in range(2))
    long = tuple(frontend(f'{"n" * 500}="{number}"', f'stream_id="{str(number) * 500}"') for number in range(2))
    first, second = run("all-gather", sets_of("all-gather", (many[0], many[1]), (long[0], long[1]))).warnings
    assert len(first) < 400
    assert second == "all-gather.1 lacks k0, k1, k2, k3, k4, k5, k6, k7 and 4 more, in which its members differ"
