from __future__ import annotations

import pickle
from collections import Counter
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import twins_participants as twins
from commlens.errors import CommlensError, GrammarError
from commlens.topology import AxisRef, IotaTileAssignment, Mesh
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.sharding import ShardGroup, Sharding
from commlens.topology.sharding_text import parse_sharding
from commlens.topology.subgroups import SUBGROUPS
from commlens.topology.tiles import mesh_to_tile, tile_array, tile_dims, tile_to_mesh
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


@st.composite
def iota_tiles(draw: st.DrawFn) -> IotaTileAssignment:
    """Draw an iota of up to some hundred devices under a shape that need not go with its reshape."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    perm = draw(st.permutations(range(len(sizes))))
    dims: list[int] = []
    left = prod(sizes)
    for _ in range(draw(st.integers(0, 3))):
        dims.append(draw(st.sampled_from([each for each in range(1, left + 1) if left % each == 0])))
        left //= dims[-1]
    return IotaTileAssignment([*dims, left], sizes, perm)


@st.composite
def tilings(draw: st.DrawFn) -> str:
    """Draw the text of a tiled sharding: iota or written out, with subgroups and a shard group."""
    tile = draw(iota_tiles())
    text = str(tile)
    if tile.num_elements > 1 and draw(st.booleans()):
        ids = draw(st.permutations(range(tile.num_elements)))
        text = f"devices=[{','.join(map(str, tile.dims))}]{','.join(map(str, ids))}"
    kinds = draw(st.lists(st.sampled_from(SUBGROUPS), max_size=len(tile.dims) - 1))
    if kinds:
        text += draw(st.sampled_from([" ", ""])) + f"last_tile_dims={{{','.join(kinds)}}}"
    if draw(st.booleans()):
        text += f" {draw(st.sampled_from(['shard_as', 'shard_like']))} {draw(st.integers(0, 9))}"
    return f"{{{text}}}"


def _pieces(draw: st.DrawFn, name: str, size: int) -> list[AxisRef]:
    """Draw a way to use an axis: whole, or in two parts."""
    outer = draw(st.sampled_from([each for each in range(1, size + 1) if size % each == 0]))
    if outer in (1, size):
        return [AxisRef(name)]
    return [AxisRef(name, 1, outer), AxisRef(name, outer, size // outer)]


@st.composite
def named_shardings(draw: st.DrawFn) -> NamedSharding:
    """Draw a sharding by mesh axes, the order of the devices plain, an iota or written out.

    Axes of size 1 cut dimensions or are not used: as subgroups they make XLA forget what it prints.
    """
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3))
    perm = draw(st.permutations(range(len(sizes))))
    moved = IotaTileAssignment(sizes, [sizes[perm.index(axis)] for axis in range(len(sizes))], perm)
    order = draw(st.none() | st.just(moved) | st.permutations(range(prod(sizes))))
    names = ["a", "b", "data x"][: len(sizes)]
    mesh = Mesh(dict(zip(names, sizes, strict=True)), order)
    pieces = [ref for name, size in mesh.axes for ref in _pieces(draw, name, size)]
    uses = ["unused", *SUBGROUPS, 0, 1, 2]
    trivial = {AxisRef(name) for name, size in mesh.axes if size == 1}
    given_to = [(draw(st.sampled_from([0, "unused"] if ref in trivial else uses)), ref) for ref in pieces]
    lists = {use: tuple(ref for each, ref in given_to if each == use) for use in uses}
    rank = draw(st.integers(0, 3))
    dims = tuple(tuple(draw(st.permutations(lists[dim]))) for dim in range(rank))
    open_dims = tuple(dim for dim in range(rank) if draw(st.booleans()))
    try:
        return NamedSharding(mesh, dims, open_dims, lists["replicated"], lists["unreduced"], lists["manual"])
    except CommlensError:  # parts of one axis side by side: they would have to be written as one
        assume(condition=False)
        raise


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
        ("{devices=[2,2]<=[16]}", 9, r"4 tiles in \[2,2\] against 16 devices"),
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


# --- meshes


@pytest.mark.parametrize(("question", "expect"), cases("named_to_tile_sharding"))
def test_named_to_tile_is_xlas(question: dict[str, str], expect: str) -> None:
    """A sharding by mesh axes stands for the tile assignment that XLA gives it."""
    named = parse_sharding(question["text"])
    assert str(named.to_tile()) == expect
    assert named.named is not None
    tile = mesh_to_tile(named.named.mesh, named.named.dim_axes)
    assert str(Sharding("tiled", tile, named.last_tile_dims)) == expect


@pytest.mark.parametrize(("question", "expect"), cases("tile_to_named_sharding"))
def test_tile_to_named_is_xlas(question: dict[str, Any], expect: str) -> None:
    """A mesh is made up for a tile assignment as XLA does it."""
    dims = question["tile_dims"]
    if "device_ids" in question:
        sharding = Sharding("tiled", np.array(question["device_ids"]).reshape(dims))
    else:
        sharding = Sharding("tiled", IotaTileAssignment(dims, question["reshape_dims"], question["transpose_perm"]))
    assert str(sharding.to_named()) == expect


@given(iota_tiles(), st.randoms(use_true_random=False))
def test_a_tile_and_its_mesh_mean_the_same(tile: IotaTileAssignment, random: Any) -> None:
    """mesh_to_tile undoes tile_to_mesh, for every iota and for devices in any order."""
    mesh, dim_axes = tile_to_mesh(tile)
    assert mesh_to_tile(mesh, dim_axes) == tile
    ids = list(range(tile.num_elements))
    random.shuffle(ids)
    written = np.array(ids).reshape(tile.dims)
    mesh, dim_axes = tile_to_mesh(written)
    np.testing.assert_array_equal(tile_array(mesh_to_tile(mesh, dim_axes)), written)


@given(named_shardings())
def test_mesh_to_tile_by_looking(named: NamedSharding) -> None:
    """A device holds the tile that its coordinates along the axes say, and copies stand in mesh order."""
    mesh = named.mesh
    tile = tile_array(mesh_to_tile(mesh, named.dim_axes))
    used = [ref for refs in named.dim_axes for ref in refs]
    devices = mesh.device_array().reshape(-1).tolist()
    expected: dict[tuple[int, ...], list[int]] = {}
    for coordinates, device in zip(product(*map(range, mesh.axis_sizes)), devices, strict=True):
        index: list[int] = []
        for refs in named.dim_axes:
            place = 0
            for ref in refs:
                size = mesh.axis_sizes[mesh.axis_index(ref.name_or_index)]
                pre, own = ref.pre_size or 1, ref.size or size
                place = place * own + coordinates[mesh.axis_index(ref.name_or_index)] * pre * own // size % own
            index.append(place)
        expected.setdefault(tuple(index), []).append(device)
    copies = len(devices) // prod(mesh.digit_of(ref).size for ref in used)
    assert {len(group) for group in expected.values()} == {copies}
    assert {index: tile[index].reshape(-1).tolist() for index in expected} == expected


@given(tilings())
def test_to_named_and_back(text: str) -> None:
    """A tiled sharding over a mesh made up for it still cuts the array the same way."""
    sharding = parse_sharding(text)
    assume(sharding.kind == "tiled")
    there = sharding.to_named()
    assert there.named is not None
    back = there.to_tile()
    assert there.to_named() is there
    if back.kind == "tiled":
        assert sharding.tile is not None
        assert back.tile is not None
        assert (back.tile_counts, back.last_tile_dims) == (sharding.tile_counts, sharding.last_tile_dims)
        np.testing.assert_array_equal(tile_array(back.tile), tile_array(sharding.tile))


@pytest.mark.parametrize(
    ("mesh", "dim_axes", "words"),
    [
        (Mesh.empty(), [], "expected a mesh with axes"),
        (Mesh.maximal(0), [], "expected a mesh with axes"),
        (Mesh({"a": 4}), [["a"], ["a"]], "Axes cannot coexist"),
        (Mesh({"a": 4}), [["a"], [AxisRef("a", 1, 2)]], "Axes cannot coexist"),
        (Mesh({"a": 4}), [[AxisRef("a", 1, 2), AxisRef("a", 2, 2)]], "can be merged"),
        (Mesh({"a": 4}), [["b"]], "not a valid axis"),
    ],
)
def test_bad_axes_are_refused(mesh: Mesh, dim_axes: list[list[AxisRef | str | int]], words: str) -> None:
    """References must exist, cut one dimension only, and be as long as they can."""
    with pytest.raises(ValueError, match=words):
        mesh_to_tile(mesh, dim_axes)


def test_many_devices_cost_what_few_do() -> None:
    """Meshes and tiles of 2^40 devices go back and forth, and are asked about, without a list."""
    sharding = parse_sharding("{devices=[1048576,1,1048576]<=[1048576,1048576]T(1,0) last_tile_dim_replicate}")
    assert (sharding.num_devices, sharding.num_copies, sharding.tile_of(2**20 + 5)) == (2**40, 2**20, (5, 0))
    named = sharding.to_named()
    assert str(named) == "{mesh['axis_0'=1048576,'axis_1'=1048576], [{'axis_1'}, {}]}"
    assert named.to_tile() == sharding
    mixed = parse_sharding("{devices=[2,1048576,1048576]<=[2199023255552] last_tile_dims={replicated,manual}}")
    assert (
        str(mixed) == "{devices=[2,1048576,1048576]<=[2,1048576,1048576]T(0,2,1) last_tile_dims={manual, replicated}}"
    )


# --- tiles of devices


@given(tilings())
def test_every_device_holds_the_tile_it_stands_at(text: str) -> None:
    """tile_of and devices_of agree with a walk over the written-out tile assignment."""
    sharding = parse_sharding(text)
    assume(sharding.kind == "tiled")
    assert sharding.tile is not None
    rank = len(sharding.tile_counts)
    holders: dict[tuple[int, ...], list[int]] = {}
    ids = iter(tile_array(sharding.tile).reshape(-1).tolist())
    for index in product(*map(range, tile_dims(sharding.tile))):
        device = next(ids)
        assert sharding.tile_of(device) == index[:rank]
        holders.setdefault(index[:rank], []).append(device)
    assert Counter(holders) == Counter({index: sharding.devices_of(index) for index in holders})
    assert sharding.num_devices == sum(map(len, holders.values()))
    if set(sharding.last_tile_dims) <= {"replicated"}:
        assert {len(devices) for devices in holders.values()} == {sharding.num_copies}


def test_reported_shardings() -> None:
    """Shardings of public reports hold the tiles that the reports work out by hand."""
    before = parse_sharding("{devices=[256,1]<=[256]}")
    after = parse_sharding("{devices=[1,64,4]<=[256] last_tile_dim_replicate}")
    assert (before.tile_counts, before.num_copies) == ((256, 1), 1)
    assert (after.tile_counts, after.num_copies) == ((1, 64), 4)
    assert [after.tile_of(device) for device in range(256)] == [(0, device // 4) for device in range(256)]
    older = parse_sharding("{devices=[2,1,1,2]0,1,2,3}")
    assert [older.tile_of(2 * i + j) for i in range(2) for j in range(2)] == [
        (i, 0, 0, j) for i in range(2) for j in range(2)
    ]
    batch = parse_sharding("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}")
    assert batch.devices_of((3, 0)) == [3, 7]


@pytest.mark.parametrize("text", ["{replicated}", "{manual}", "{maximal device=0}", "{{replicated}}", "{unknown}"])
def test_shardings_without_tiles_say_so(text: str) -> None:
    """Questions about tiles have no answer where nothing is cut."""
    sharding = parse_sharding(text)
    for ask in (
        lambda: sharding.tile_counts,
        lambda: sharding.num_copies,
        lambda: sharding.tile_of(0),
        lambda: sharding.devices_of((0,)),
        sharding.to_named,
    ):
        with pytest.raises(ValueError, match="expected a sharding that cuts an array into tiles"):
            ask()


@pytest.mark.parametrize("text", ["{devices=[2,2]<=[4]}", "{devices=[2,2]3,5,7,9}"])
def test_devices_and_tiles_outside_are_refused(text: str) -> None:
    """A device or tile that the sharding does not have is an error."""
    sharding = parse_sharding(text)
    with pytest.raises(ValueError, match="found 11"):
        sharding.tile_of(11)
    for index in ((2, 0), (-1, 0), (0,), (0, 0, 0)):
        with pytest.raises(ValueError, match=r"inside \[2, 2\]"):
            sharding.devices_of(index)


def test_maximal_shardings_name_their_device() -> None:
    """In every spelling."""
    for text in ("{maximal device=5}", "{maximal devices=[1]5}", "{maximal_mesh[device_id=5]}"):
        assert (parse_sharding(text).device, parse_sharding(text).num_devices) == (5, 1)
    assert parse_sharding("{replicated}").device is None
    assert parse_sharding("{replicated}").num_devices is None


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
