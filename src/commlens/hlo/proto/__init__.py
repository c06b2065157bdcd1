"""The proto backend: modules that are outlines of protobuf messages.

Nothing outside imports protobuf, and this package is imported only when there is a proto to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.proto.containers import find_modules
from commlens.hlo.proto.definition_order import uses_before_definition_in_list
from commlens.hlo.proto.module import ProtoModule

if TYPE_CHECKING:
    from commlens.hlo.proto.locations import FoundModule

__all__ = ["ProtoModule", "read_binary", "read_text_form", "uses_before_definition_in_list"]


def read_binary(
    data: bytes, path: str, *, replicas: int | None = None, partitions: int | None = None
) -> list[ProtoModule]:
    """Read the modules of a binary proto.

    Args:
        data: the whole content: an HloModuleProto, HloProto, HloSnapshot, HloUnoptimizedSnapshot, HloModuleGroupProto
            or HloModuleProtoWithConfig.
        path: what to call it in messages.
        replicas: replica count, where the user states it.
        partitions: partition count likewise.

    Returns:
        The modules, at least one.

    Raises:
        CommlensError: it is none of these messages, or was cut.
    """
    return _modules(find_modules(data), path, replicas, partitions)


def read_text_form(
    data: bytes, path: str, *, replicas: int | None = None, partitions: int | None = None
) -> list[ProtoModule]:
    """Read the modules of a proto's text form.

    Args:
        data: the whole text: any message that has modules in it.
        path: what to call it in messages.
        replicas: replica count, where the user states it.
        partitions: partition count likewise.

    Returns:
        The modules, none where the text holds none.

    Raises:
        CommlensError: the text cannot be read.
    """
    from commlens.hlo.proto.text_form import find_modules_in_text

    return _modules(find_modules_in_text(data), path, replicas, partitions)


def _modules(found: list[FoundModule], path: str, replicas: int | None, partitions: int | None) -> list[ProtoModule]:
    return [ProtoModule(each, path, replicas, partitions) for each in found]
