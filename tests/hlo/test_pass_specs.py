"""Passes as text: reading and printing ``name{option=value,...},name2``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError, GrammarError
from commlens.hlo import Option, Pass, PassResult, nearest, options_of, parse_specs, spec_of, specs_of

if TYPE_CHECKING:
    from commlens.hlo import Module


class Idle(Pass):
    """What all passes of these tests do."""

    __slots__ = ()

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Do nothing."""
        return PassResult(self.name, changed=False, modified=False, stats={"kept_going": keep_going}, module=module)


@dataclass(frozen=True, slots=True)
class Merge(Idle):
    """A pass with every kind of option."""

    name: ClassVar[str] = "merge-things"
    most_bytes: int = 1 << 30
    by_dim: bool = True
    group: Literal["auto", "off"] = "auto"


@dataclass(frozen=True, slots=True)
class Number(Idle):
    """A pass without options and with the other way to write names."""

    name: ClassVar[str] = "number_things_anew"


@dataclass(frozen=True, slots=True)
class Even(Idle):
    """A pass that does not take every value."""

    name: ClassVar[str] = "even"
    count: int = 2

    def __post_init__(self) -> None:
        """Refuse odd numbers."""
        if self.count % 2:
            msg = f"expected an even count, found {self.count}"
            raise CommlensError(msg)


KNOWN: dict[str, type[Pass]] = {each.name: each for each in (Merge, Number, Even)}

merges = st.builds(Merge, most_bytes=st.integers(), by_dim=st.booleans(), group=st.sampled_from(["auto", "off"]))
any_passes = st.lists(
    st.one_of(merges, st.just(Number()), st.builds(Even, st.integers().map(lambda half: 2 * half))), min_size=1
)


@given(passes=any_passes)
def test_what_is_printed_reads_back(passes: list[Pass]) -> None:
    """The text of passes and their constructors say the same."""
    assert parse_specs(specs_of(passes), KNOWN) == tuple(passes)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        pytest.param(Number(), "number_things_anew", id="no-options"),
        pytest.param(Merge(), "merge-things", id="defaults-are-not-said"),
        pytest.param(Merge(group="off"), "merge-things{group=off}", id="word"),
        pytest.param(
            Merge(most_bytes=-1, by_dim=False), "merge-things{most_bytes=-1,by_dim=false}", id="in-the-order-of-fields"
        ),
    ],
)
def test_canonical_text(one: Pass, text: str) -> None:
    """A pass prints its name and what differs from its defaults, and that is its string form."""
    assert (spec_of(one), str(one)) == (text, text)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        pytest.param("merge-things{most-bytes=5}", (Merge(most_bytes=5),), id="dashes-in-options"),
        pytest.param("merge-things{most_bytes=5}", (Merge(most_bytes=5),), id="underscores-in-options"),
        pytest.param("merge-things{}", (Merge(),), id="empty-braces"),
        pytest.param("merge-things{most_bytes=1073741824}", (Merge(),), id="a-default-said"),
        pytest.param("merge-things{most_bytes=+7,group=auto}", (Merge(most_bytes=7),), id="a-sign"),
        pytest.param("number_things_anew,number_things_anew", (Number(), Number()), id="twice-the-same"),
        pytest.param(
            " merge-things { by_dim = false , group = off } ,\n number_things_anew\t",
            (Merge(by_dim=False, group="off"), Number()),
            id="blanks-anywhere",
        ),
    ],
)
def test_spellings_that_are_read(text: str, passes: tuple[Pass, ...]) -> None:
    """Blanks are free, options may be spelled with dashes, braces may be empty."""
    assert parse_specs(text, KNOWN) == passes


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        pytest.param("", 0, "expected the name of a pass, found the end of the text", id="nothing"),
        pytest.param("  ", 2, "expected the name of a pass, found the end of the text", id="blanks"),
        pytest.param(",even", 0, "expected the name of a pass, found ',even'", id="comma-first"),
        pytest.param("even,", 5, "expected the name of a pass, found the end of the text", id="comma-last"),
        pytest.param("even, merge", 6, "found 'merge'; the nearest is 'merge-things'", id="part-of-a-name"),
        pytest.param("merge_things", 0, "found 'merge_things'; the nearest is 'merge-things'", id="names-are-exact"),
        pytest.param("Even", 0, "found 'Even'; the nearest is 'even'", id="capital-letter"),
        pytest.param("x" * 500, 0, f"found '{'x' * 40}'; the nearest is ", id="long-name"),
        pytest.param("even even", 5, "expected a comma or '{' behind a pass, found 'even'", id="no-comma"),
        pytest.param("even{}even", 6, "expected a comma behind a pass, found 'even'", id="no-comma-behind-braces"),
        pytest.param("even}", 4, "expected a comma or '{' behind a pass, found '}'", id="closed-unopened"),
        pytest.param("even{", 5, "expected an option of even, found the end of the text", id="unclosed"),
        pytest.param("even{count=2", 12, "expected a comma or '}' behind an option, found the end", id="unclosed-late"),
        pytest.param("even{count=2,}", 13, "expected an option of even, found '}'", id="comma-before-brace"),
        pytest.param("even{count}", 10, "expected '=' and a value behind count, found '}'", id="no-value"),
        pytest.param("even{count=}", 11, "expected a value for count, found '}'", id="empty-value"),
        pytest.param("even{cuont=2}", 5, "an option of even, found 'cuont'; the nearest is 'count'", id="misspelled"),
        pytest.param("number_things_anew{a=1}", 19, "found 'a'; it has none", id="no-options-at-all"),
        pytest.param("even{count=2,count=4}", 13, "expected each option once, found count again", id="twice"),
        pytest.param("merge-things{by-dim=true,by_dim=true}", 25, "found by_dim again", id="twice-otherwise-spelled"),
        pytest.param("even{count=two}", 11, "count to be an integer such as 2, found 'two'", id="no-integer"),
        pytest.param("even{count=2.5}", 11, "count to be an integer such as 2, found '2.5'", id="fraction"),
        pytest.param("even{count=٣}", 11, "count to be an integer such as 2, found '٣'", id="other-digits"),
        pytest.param("even{count=" + "9" * 9999 + "}", 11, "to be an integer such as 2, found '999", id="long-number"),
        pytest.param("merge-things{by_dim=1}", 20, "by_dim to be true or false, found '1'", id="no-flag"),
        pytest.param("merge-things{group=on}", 19, "group to be auto or off, found 'on'", id="no-such-word"),
        pytest.param("merge-things{},even{count=3}", 15, "even: expected an even count, found 3", id="pass-refuses"),
    ],
)
def test_texts_that_are_refused(text: str, position: int, says: str) -> None:
    """What is wrong is said, and where."""
    with pytest.raises(GrammarError) as caught:
        parse_specs(text, KNOWN)
    assert says in str(caught.value)
    assert caught.value.position == position


@given(text=st.text(alphabet="even{}=,count2 -_\n\x00é", max_size=20))
def test_any_text_is_read_or_refused_in_its_bounds(text: str) -> None:
    """No text ends in anything but passes or a grammar error that points into it."""
    position = 0
    try:
        passes = parse_specs(text, KNOWN)
    except GrammarError as error:
        passes, position = (Number(),), error.position
    assert 0 <= position <= len(text)
    assert parse_specs(specs_of(passes), KNOWN) == passes


def test_options_are_the_fields() -> None:
    """Each field is an option with its kind, default and words."""
    assert options_of(Merge) == (
        Option("most_bytes", "int", 1 << 30),
        Option("by_dim", "bool", True),
        Option("group", "word", "auto", ("auto", "off")),
    )


@dataclass(frozen=True, slots=True)
class WithoutDefault(Idle):
    """A pass that nobody could name without its option."""

    name: ClassVar[str] = "without-default"
    count: int


@dataclass(frozen=True, slots=True)
class OfFloats(Idle):
    """A pass with an option of no known kind."""

    name: ClassVar[str] = "of-floats"
    ratio: float = 0.5


@pytest.mark.parametrize("pass_class", [WithoutDefault, OfFloats, Idle])
def test_other_fields_are_a_fault_of_the_pass(pass_class: type[Pass]) -> None:
    """A class that cannot be written as text is refused as such."""
    with pytest.raises(TypeError, match="expected"):
        options_of(pass_class)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("all-reduce-combine", "all-reduce-combiner", id="shorter"),
        pytest.param("ALL_GATHER_COMBINER", "all-gather-combiner", id="letters-and-dashes-do-not-count"),
        pytest.param("reducescatter", "reduce-scatter-combiner", id="a-part"),
    ],
)
def test_nearest_name(word: str, expected: str) -> None:
    """The nearest name is what one would think."""
    assert nearest(word, ["all-gather-combiner", "reduce-scatter-combiner", "all-reduce-combiner"]) == expected
