"""Programs and meshes by what they can do: stand-ins for JAX, which the analysis never imports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commlens.analysis import expect
from commlens.errors import CommlensError
from commlens.hlo import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from commlens.analysis import Report

TEXT = """HloModule step, num_partitions=8
ENTRY e {
  p = f32[16] parameter(0)
  ROOT g = f32[64] all-gather(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, use_global_device_ids=true
}
"""
ALONE = "HloModule alone\nENTRY e {\n  ROOT p = f32[16] parameter(0)\n}\n"


@dataclass(frozen=True)
class Device:
    id: int


@dataclass(frozen=True)
class DeviceMesh:
    """What ``jax.sharding.Mesh`` shows of itself."""

    devices: np.ndarray
    axis_names: tuple[str, ...]

    @property
    def shape(self) -> dict[str, int]:
        """Sizes by name."""
        return dict(zip(self.axis_names, self.devices.shape, strict=True))


class AbstractMesh:
    axis_names = ("data", "model")
    shape = {"data": 2, "model": 4}  # noqa: RUF012 - a stand-in

    @property
    def devices(self) -> object:
        """Refuse, as an abstract mesh does."""
        msg = "AbstractMesh does not implement devices"
        raise ValueError(msg)


@dataclass(frozen=True)
class Executable:
    ids: Sequence[int]

    def local_devices(self) -> list[Device]:
        """The devices in the order of the ids."""
        return [Device(each) for each in self.ids]


@dataclass(frozen=True)
class Sharding:
    mesh: DeviceMesh


@dataclass
class Compiled:
    text: str = TEXT
    ids: Sequence[int] = range(8)
    input_shardings: object = ()
    output_shardings: object = None

    def as_text(self) -> str:
        """The HLO text."""
        return self.text

    def runtime_executable(self) -> Executable:
        """The executable."""
        return Executable(self.ids)


@dataclass
class Lowered:
    asked: list[object] = field(default_factory=list)

    def as_text(self) -> str:
        """What is no HLO yet."""
        return "module @jit_step {}"

    def compile(self) -> Compiled:
        """The compiled program."""
        return Compiled()


@dataclass
class Jitted:
    asked: list[object] = field(default_factory=list)

    def __call__(self, *args: object) -> object:
        """Refuse to run."""
        raise AssertionError(args)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Note the arguments."""
        self.asked.append((args, kwargs))
        return Lowered()


def mesh(order: Sequence[int] = range(8), sizes: tuple[int, ...] = (2, 4), names: str = "data model") -> DeviceMesh:
    """Return a mesh of devices in some order."""
    devices = np.empty(len(order), dtype=object)
    devices[:] = [Device(each) for each in order]
    return DeviceMesh(devices.reshape(sizes), tuple(names.split()))


# --- what is taken --------------------------------------------------------------------------------------------------


def test_modules_files_and_texts_are_taken(tmp_path: Path) -> None:
    """A module, a path as text or object, a text and its bytes: one answer."""
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    for about in (load(TEXT), path, str(path), TEXT, TEXT.encode(), Compiled(), Lowered()):
        expect(about, "data=2,model=4").count("all-gather", 1, axes="model").only("all-gather")


def test_a_function_is_compiled_for_its_arguments_and_never_run() -> None:
    """A jitted function gets what is given in args and kwargs, once."""
    step = Jitted()
    expect(step, "data=2,model=4", args=(1, 2), kwargs={"n": 3}).count("all-gather", 1, axes="model")
    assert step.asked == [((1, 2), {"n": 3})]


def test_a_report_and_claims_are_taken_as_they_are(report_of: Callable[..., Report]) -> None:
    """Nothing is read twice."""
    report = report_of()
    assert expect(report).report is report
    assert expect(expect(report), allow_unread=True).report is report


@pytest.mark.parametrize(
    ("about", "given", "message"),
    [
        (3, {}, "expected a module, a file, an HLO text, a jitted function, .*found int"),
        (len, {}, "wrap it in jax.jit"),
        (TEXT, {"args": (1,)}, "found some for str"),
        (Compiled(), {"kwargs": {"n": 1}}, "found some for Compiled"),
        (TEXT, {"mesh": 7}, "a mesh of devices, found 7"),
        (TEXT * 2, {}, "load_all"),
        ("no-such-file", {}, "no-such-file"),
    ],
)
def test_others_are_refused(about: object, given: dict[str, object], message: str) -> None:
    """What is no program, arguments for nothing, no mesh, several modules, no file."""
    with pytest.raises(CommlensError, match=message):
        expect(about, **given)  # type: ignore[arg-type]


# --- meshes of devices ----------------------------------------------------------------------------------------------

ORDERS = {
    "plain": range(8),
    "reversed": range(7, -1, -1),
    "columns": (0, 2, 4, 6, 1, 3, 5, 7),
    "irregular": (5, 0, 7, 2, 1, 4, 3, 6),
}


def slow_ids(mesh: DeviceMesh, assigned: Sequence[int]) -> list[int]:
    """Return, row-major over a mesh, where each device stands in the assignment."""
    return [[int(each) for each in assigned].index(device.id) for device in mesh.devices.flat]


@pytest.mark.parametrize("assigned", ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
def test_ids_are_brought_into_the_order_of_the_devices(order: Sequence[int], assigned: Sequence[int]) -> None:
    """Ids in a program are positions in its assignment: the mesh is named over those, not over device numbers."""
    devices = mesh(order)
    named = expect(Compiled(ids=assigned), devices).report.mesh
    assert named is not None
    assert dict(named.axes) == {"data": 2, "model": 4}
    assert named.device_array().reshape(-1).tolist() == slow_ids(devices, assigned)


def test_the_mesh_that_arguments_lie_on_names_the_axes_whatever_the_numbers() -> None:
    """The usual case: the program is assigned in the order of the mesh, so the groups run along the last axis."""
    order = ORDERS["irregular"]
    expect(Compiled(ids=order), mesh(order)).count("all-gather", 1, axes="model")
    expect(Compiled(ids=ORDERS["columns"]), mesh(sizes=(4, 2), names="row column")).count("all-gather", 1, axes="row")


def test_devices_of_other_processes_are_told_by_the_shardings() -> None:
    """Where a process sees some of the devices alone, the meshes of arguments and results have the order."""
    order, two = ORDERS["columns"], range(2)
    on = Sharding(mesh(order))
    for program in (
        Compiled(ids=two, input_shardings=((on, "x"), {"w": on})),
        Compiled(ids=two, output_shardings={"loss": [on, Sharding(mesh(range(2), (2,), "x"))]}),
    ):
        expect(program, mesh(order)).count("all-gather", 1, axes="model")
    for other in ((), (on, Sharding(mesh()))):
        with pytest.raises(CommlensError, match="in which order it uses the 8 devices"):
            expect(Compiled(ids=two, input_shardings=other), mesh(order))


def test_a_mesh_of_names_counts_in_its_own_order() -> None:
    """Abstract meshes, and files, whose devices nobody knows: ids are positions in the mesh."""
    expect(Compiled(), AbstractMesh()).count("all-gather", 1, axes="model")
    expect(TEXT, mesh(ORDERS["reversed"])).count("all-gather", 1, axes="model")
    expect(ALONE, mesh()).none()


@pytest.mark.parametrize(
    ("program", "devices", "message"),
    [
        (Compiled(), mesh(range(4), (4,), "x"), "the 4 devices of the mesh, found step compiled for 8$"),
        (TEXT, mesh(range(4), (4,), "x"), "the 4 devices of the mesh, found step compiled for 8$"),
        (Compiled(ALONE, ids=[0]), mesh(), "found alone compiled for 1; give arguments that are sharded on the mesh"),
        (Compiled(), mesh(range(1, 9)), "found device 0 outside it"),
    ],
)
def test_a_mesh_of_other_devices_is_refused(program: object, devices: DeviceMesh, message: str) -> None:
    """Another number of devices, an unsharded program, other devices: each says what would be right."""
    with pytest.raises(CommlensError, match=message):
        expect(program, devices)
