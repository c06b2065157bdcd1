"""The meshes that JAX names in a module's header, ``xla.sdy.meshes``.

Source: the MLIR spelling of ``MeshAttr`` in shardy/dialect/sdy/ir/attrs.td, as XLA's Shardy round trip writes it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.topology import Mesh

if TYPE_CHECKING:
    from collections.abc import Mapping

MESHES_ATTRIBUTE: Final = "xla.sdy.meshes"
_MESH: Final = re.compile(r"#sdy\.mesh<\[(?P<axes>[^\]\[]*+)\](?:,\s*device_ids\s*=\s*\[(?P<ids>[\d,\s]*)\])?\s*>")
_AXIS: Final = re.compile(r'\\?"(?P<name>[^"\\]*)\\?"\s*=\s*(?P<size>\d{1,18})')


def header_meshes(frontend_attributes: Mapping[str, str]) -> list[Mesh]:
    """Return the meshes with axes that a module's frontend attributes name, in order, each once.

    Example:
        >>> text = '{mesh = #sdy.mesh<["data"=2, "model"=4]>}'
        >>> [str(mesh) for mesh in header_meshes({"xla.sdy.meshes": text})]
        ["mesh['data'=2,'model'=4]"]
    """
    found: list[Mesh] = []
    for match in _MESH.finditer(frontend_attributes.get(MESHES_ATTRIBUTE, "")):
        axes = [(axis["name"], int(axis["size"])) for axis in _AXIS.finditer(match["axes"])]
        ids = [int(each) for each in re.findall(r"\d{1,18}", match["ids"] or "")]
        if not axes:
            continue
        try:
            mesh = Mesh(axes, ids or None)
        except ValueError:
            continue  # a mesh that is none names nothing; whoever needs it sees that there is no mesh
        if mesh not in found:
            found.append(mesh)
    return found


def only_header_mesh(frontend_attributes: Mapping[str, str]) -> Mesh | None:
    """Return the mesh of the header, None unless there is exactly one."""
    meshes = header_meshes(frontend_attributes)
    return meshes[0] if len(meshes) == 1 else None
