"""A module serialized as XLA's own readers take it: without the container that it was found in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.model import UnreadableError

if TYPE_CHECKING:
    from commlens.hlo.model import Module


def serialized_module(module: Module) -> bytes:
    r"""Return a module's HLO text, or its binary HloModuleProto without the message that holds it.

    Args:
        module: the module.

    Raises:
        UnreadableError: the module was found in the text form of a proto, which says less than the proto.

    Example:
        >>> from commlens.hlo.loading import load
        >>> serialized_module(load("HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n"))[:11]
        b'HloModule m'
    """
    if module.format == "text":
        return module.to_bytes()
    from commlens.hlo.proto import ProtoModule
    from commlens.hlo.proto.binary_message import BinaryMessage

    written = module.found.raw if isinstance(module, ProtoModule) else None
    if not isinstance(written, BinaryMessage):
        msg = "expected HLO text or a binary proto, found the text form of a proto"
        raise UnreadableError(msg)
    return written.data
