"""Shardings as text, held against XLA, and as values."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given

import twins_participants as twins
from commlens.errors import GrammarError
from commlens.topology import AxisRef, IotaTileAssignment, Mesh
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.sharding import ShardGroup, Sharding
from commlens.topology.sharding_text import parse_sharding
from commlens.topology.tiles import as_tile, tile_array
from sharding_strategies import named_shardings, tilings
from xla_cases import cases
from xla_shardings import XlaShardings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.topology.subgroups import Subgroup


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaShardings]:
    """Give XLA's own reader of shardings."""
    reader = XlaShardings()
    yield reader
    reader.close()


# --- text


@pytest.mark.parametrize(("question", "expect"), cases("sharding_text"))
def test_text_is_xlas(question: dict[str, str], expect: dict[str, str]) -> None:
    """Shardings print as XLA prints them."""
    assert str(parse_sharding(question["text"])) == expect["printed"]


@given(tilings())
def test_tilings_read_and_print_as_in_xla(xla: XlaShardings, text: str) -> None:
    """On generated tile assignments, canonical form and text are XLA's, and the text reads back as the same value.

    XLA does not always arrive at its canonical form at once ({devices=[1,2,1]<=[2] last_tile_dims={unreduced,manual}}).
    """
    mine = parse_sharding(text)
    theirs = xla.read(text)
    assert theirs is not None
    again = xla.read(theirs.printed)
    assert again is not None
    assert str(mine) == again.printed
    assert parse_sharding(str(mine)) == mine


@given(named_shardings())
def test_named_shardings_mean_what_they_mean_in_xla(xla: XlaShardings, named: NamedSharding) -> None:
    """Text of named shardings, and the tile assignment they stand for, are XLA's."""
    mine = Sharding.of_named(named)
    theirs = xla.read(str(mine))
    assert theirs is not None
    assert (str(mine), str(mine.to_tile())) == theirs
    assert str(parse_sharding(theirs.printed)) == theirs.printed


GOOD_TEXTS = [
    "{replicated}",
    "{ replicated }",
    "{maximal device=3}",
    "{device=3 maximal}",
    "{maximal devices=[1]7}",
    "{manual shard_as 3}",
    "{unknown}",
    '{unreduced metadata={op_name="}"}}',
    "{{replicated}, {maximal device=0}}",
    "{{devices=[2,2]<=[4] shard_as 1},{replicated shard_like 2}}",
    "{ }",
    "{devices=[2,2]/*c*/<=[4]}",
    "{devices=[2,2]0,1,2,3last_tile_dim_replicate}",
    "{last_tile_dim_replicate devices=[2,2]<=[4]}",
    '{devices=[2,2]0,2,1,3 metadata={{op_name="x"}, {op_name="y"}}}',
    "{devices=[4,2]1,0,2,3,4,5,7,6 last_tile_dim_replicate}",
    "{devices=[2,4]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}",
    "{devices=[2,3]<=[2,3]T(1,0) last_tile_dim_replicate}",
    "{devices=[2,4]<=[2,2,2]T(2,1,0) last_tile_dims={manual}}",
    "{mesh['a'=2,'b'=4] [{'a'},{'b':(1)2}]}",
    "{mesh['a'=1,'b'=1], [{'a'}], manual={'b'}}",
    "{mesh['a'=8], [{'a':(2)2}, {'a':(4)2}], manual={'a':(1)2}}",
    "{mesh['a'=6], device_ids=([3,2]T(1,0)), [{'a':(1)3}, {}]}",
    "{mesh['a'=2,'b'=4], [{'a', ?}, {?}]}",
    "{mesh['a'=2,'b'=4], [{'0'}, {}]}",
    "{mesh['a'=2,'b'=4,'c'=2,'d'=2], [{'a'}, {}], manual={'d'}, unreduced={'c'}, replicated={'b'}}",
    "{mesh['a'=2,'b'=4,'c'=2], [{'a'}], replicated={'b'}, replicated={'c'}}",
    "{mesh['a'=2], [], manual={'a'}}",
    "{mesh['a'=2], manual}",
    "{mesh['a'=2], unreduced}",
    "{mesh['a'=2], replicated, metadata={}}",
    "{mesh['a'=2,'b'=2], device_ids=([4]), [{'a'}]}",
    "{mesh[], []}",
    "{mesh[], [{},{}]}",
    "{maximal_mesh[device_id=5]}",
    "{{mesh['a'=2], [{'a'}]}, {replicated}}",
]


@pytest.mark.parametrize("text", GOOD_TEXTS)
def test_forms_and_spacings_are_read_as_in_xla(xla: XlaShardings, text: str) -> None:
    """All forms are read, and printed as XLA prints them."""
    mine, theirs = parse_sharding(text), xla.read(text)
    assert theirs is not None
    assert (str(mine), str(mine.to_tile())) == theirs


BAD_TEXTS = [
    ("", 0),
    ("replicated", 0),
    ("{maximal}", 1),
    ("{maximal devices=[2]0,1}", 1),
    ("{device=0}", 1),
    ("{devices=[1]5}", 1),
    ("{devices=[2,2]<=[4]T(0)}", 19),
    ("{devices=[2,2]<=[2,2]}", 21),
    ("{{{replicated}}}", 2),
    ("{devices=[]0}", 9),
    ("{last_tile_dim_replicate}", 1),
    ("{devices=[2]<=[2] , }", 18),
    ("{devices=[2]<=[2]} x", 19),
    ("{devices=[2,2]<=[4]// }", 23),
    ("{devices=[2,2]<=[4] last_tile_dims={unknown}}", 36),
    ("{devices=[2,2]<=[4] last_tile_dims={manual,manual,manual}}", 1),
    ("{devices=[2,2]<=[4] last_tile_dims={manual} last_tile_dim_replicate}", 44),
    ("{replicated metadata=x}", 21),
    ("{replicated metadata={{}}", 25),
    ("{{replicated} {manual}}", 14),
    ("{{replicated},}", 14),
    ("{{},{replicated}}", 2),
    ("{replicated}}", 12),
    ("{{replicated}", 13),
    ("{devices=[2,2]<=[4] foo}", 20),
    ("{devices=2,2}", 9),
    ("{devices=[2,2]}", 14),
    ("{devices=[2 2]<=[4]}", 12),
    ("{devices=[2,2]<=[4}", 18),
    ("{devices=[2,2]0,,1}", 16),
    ("{devices=[2,2]0,1,2,3,}", 22),
    ("{devices=[2,2]<=[99999999999999999999]}", 17),
    ("{shard_as}", 9),
    ("{mesh['a'=2,'b'=4], [], replicated={'b','a'}}", 1),
    ("{mesh['a'=2,'b'=4], [{'a'}, {'a'}]}", 1),
    ("{mesh['a'=4], [{'a':(1)2,'a':(2)2}]}", 1),
    ("{mesh['a'=2], [{'a'}] metadata={}}", 22),
    ("{mesh['a'=2], [{?,'a'}]}", 17),
    ("{mesh['a'=2], [{'a'}],}", 22),
    ("{mesh['a'=2], [{'a'}], shard_as 1}", 23),
    ("{mesh['a'=2], [{'c'}]}", 16),
    ("{mesh['a'=2], replicated, manual={'a'}}", 26),
    ("{mesh[]}", 7),
    ("{mesh[], manual}", 9),
    ("{maximal_mesh[device_id=5], []}", 28),
]


@pytest.mark.parametrize(("text", "position"), BAD_TEXTS)
def test_faults_are_refused_as_in_xla_and_placed(xla: XlaShardings, text: str, position: int) -> None:
    """What XLA refuses or dies of is an error that says where."""
    assert xla.read(text) is None
    with pytest.raises(GrammarError) as caught:
        parse_sharding(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("{devices=[2,2]<=[16]}", 9, r"4 tiles in \[2, 2\] against 16 devices"),
        ("{devices=[100000,100000]<=[99]}", 9, "10000000000 tiles"),
        ("{devices=[2,2]0,1,2}", 9, "against 3 devices"),
        ("{devices=[2]0,1,2}", 9, "against 3 devices"),
        ("{devices=[2,2]0,1,2,2}", 9, "found 2, which stands more than once"),
        ("{devices=[2,2]0,1,2,-7}", 9, "found -7, which is negative"),
        ("{devices=[2,2]<=[2,2]T(0,0)}", 9, "permutation"),
        ("{devices=[2,2]<=[2,2]T(0)}", 9, "permutation"),
        ("{devices=[0]<=[0]}", 9, "at least 1"),
        ("{devices=[-2]<=[-2]}", 9, "at least 1"),
        ("{devices=[2]<=[2] replicated}", 1, "tile assignment with a tiled or maximal sharding"),
        ("{replicated manual}", 12, "found another, 'manual'"),
        ("{maximal device=0 device=1}", 18, "found another, 'device'"),
        ("{maximal device=-1}", 1, "found -1, which is negative"),
        ("{devices=[2,2]<=[4] last_tile_dims={maximal}}", 36, "a kind of last tile dimension"),
        ("{mesh['a'=0], [{'a'}]}", 1, "at least 1"),
    ],
)
def test_garbage_that_xla_carries_along_is_refused(text: str, position: int, words: str) -> None:
    """XLA reads these and works on with wrong numbers, or in memory that is not there; here they are errors."""
    with pytest.raises(GrammarError, match=words) as caught:
        parse_sharding(text)
    assert caught.value.position == position


def test_older_mesh_spellings_are_read() -> None:
    """Shardings by mesh axes in the older spellings print in the newer one."""
    for text in ("{mesh[a=2,b=2], [{a}, {b}]}", "{@mesh<a=2,b=2>, [{a}, {b}]}"):
        assert str(parse_sharding(text)) == "{mesh['a'=2,'b'=2], [{'a'}, {'b'}]}"


def test_metadata_is_kept_but_not_compared() -> None:
    """Metadata stays as it was written, is not printed, and makes no sharding different, as in XLA."""
    sharding = parse_sharding('{devices=[2]<=[2] metadata={ op_name="a}" source_line=3 }}')
    assert sharding.metadata == 'op_name="a}" source_line=3'
    assert sharding == parse_sharding("{devices=[2]<=[2]}")
    assert str(sharding) == "{devices=[2]<=[2]}"
    assert parse_sharding("{mesh['a'=2], [{'a'}], metadata={x=1}}").metadata == "x=1"


# --- values


def test_shardings_are_values() -> None:
    """Equality is XLA's: iotas by form, others by their devices, whatever the spelling; hashes agree."""
    iota, written = parse_sharding("{devices=[2,2]<=[4]}"), parse_sharding("{devices=[2,2]0,1,2,3}")
    assert iota == written
    assert hash(iota) == hash(written)
    assert str(iota) != str(written)
    others = ["{devices=[4]<=[4]}", "{devices=[2,2]<=[2,2]T(1,0)}", "{devices=[2,2]<=[4] last_tile_dim_replicate}"]
    others += ["{replicated}", "{mesh['a'=2,'b'=2], [{'a'}, {'b'}]}", "{devices=[2,2]<=[4] shard_as 1}", "{}"]
    for text in others:
        assert iota != parse_sharding(text)
    assert iota != "{devices=[2,2]<=[4]}"
    for text in [*GOOD_TEXTS, *others]:
        sharding = parse_sharding(text)
        assert pickle.loads(pickle.dumps(sharding)) == sharding  # noqa: S301 - our own bytes


def test_tiles_of_a_sharding_cannot_be_changed() -> None:
    """Neither the sharding's own array nor the caller's gets in the way of the other."""
    ids = np.array([[0, 2], [1, 3]])
    sharding = Sharding("tiled", ids)
    ids[0, 0] = 9
    assert str(sharding) == "{devices=[2,2]0,2,1,3}"
    for each in (sharding, Sharding("tiled", np.array([[1, 0]]), ("replicated",)), Sharding.maximal(0)):
        if each.tile is not None:
            with pytest.raises(ValueError, match="read-only"):
                tile_array(each.tile)[0] = 7


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "other"}, "expected a kind of sharding"),
        ({"kind": "tiled"}, "expected a tile assignment with a tiled"),
        ({"kind": "replicated", "tile": IotaTileAssignment((2,))}, "with no other"),
        ({"kind": "manual", "last_tile_dims": ("manual",)}, "with no other"),
        ({"kind": "maximal", "tile": np.array([0, 1])}, "the one device of a maximal sharding"),
        ({"kind": "tiled", "tile": np.array(["a"])}, "expected a tile assignment of device ids"),
        ({"kind": "tiled", "tile": np.array(3)}, "expected a tile assignment of device ids"),
        ({"kind": "tiled", "tile": IotaTileAssignment((2,)), "last_tile_dims": ("odd",)}, "found odd"),
        ({"kind": "tiled", "tile": IotaTileAssignment((2,)), "last_tile_dims": ("manual",) * 2}, "at most 1 kinds"),
        ({"kind": "replicated", "elements": (Sharding("replicated"),)}, "expected elements with a tuple"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(fields: dict[str, Any], words: str) -> None:
    """The constructor says what does not fit."""
    with pytest.raises(ValueError, match=words):
        Sharding(**fields)


def test_named_shardings_of_meshes_without_axes() -> None:
    """The empty and the maximal mesh have nothing to cut along."""
    with pytest.raises(ValueError, match="expected no axes with"):
        NamedSharding(Mesh.empty(), ((AxisRef("a"),),))
    assert Sharding.of_named(NamedSharding(Mesh.empty())).kind == "replicated"


def test_subgroups_of_one_kind_are_that_kind() -> None:
    """A tile that cuts nothing, with one kind of subgroup, is that kind alone, and keeps its shard group."""
    kinds: list[Subgroup] = ["manual", "unreduced", "replicated"]
    for kind in kinds:
        sharding = Sharding("tiled", IotaTileAssignment((1, 4)), (kind,), shard_group=ShardGroup("shard_as", 4))
        assert (sharding.kind, sharding.tile, str(sharding)) == (kind, None, f"{{{kind} shard_as 4}}")


def test_iotas_of_the_twin() -> None:
    """The twin of iotas reads the reshape and transposition as numpy does."""
    assert twins.iota_ids((2, 3), (1, 0)) == IotaTileAssignment((6,), (2, 3), (1, 0)).to_array().tolist()


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[2]<=[" + ",".join(["9999999999"] * 500) + "]T(" + ",".join(map(str, range(500))) + ")}",
        "{devices=[" + ",".join(["9999999999"] * 500) + "]0,1}",
        "{devices=[" + ",".join(["9999999999"] * 500) + "]<=[2]}",
        "{devices=[2]<=[-1," + ",".join(["9999999999"] * 500) + "]T(" + ",".join(map(str, range(501))) + ")}",
    ],
)
def test_hostile_products_are_errors_of_the_text(text: str) -> None:
    """A product that is too long to be printed is refused with its place, like any other fault."""
    with pytest.raises(GrammarError, match="the number of devices must fit in 64 bits") as caught:
        parse_sharding(text)
    assert caught.value.position == 9


@pytest.mark.parametrize("device", [1 << 63, (1 << 64) - 1])
def test_devices_of_a_tile_fit_in_64_bits(device: int) -> None:
    """An unsigned id that is no int64 is refused, and never becomes a negative one."""
    with pytest.raises(ValueError, match="expected a tile assignment of device ids"):
        as_tile(np.array([device, 1], dtype=np.uint64))
    assert tile_array(as_tile(np.array([7, 1], dtype=np.uint64))).tolist() == [7, 1]
