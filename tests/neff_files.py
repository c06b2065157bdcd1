"""Miniature .neff files, built by the description of the container and not by the package's own code."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LAYOUT: Final = "<5Q128sI32s16s256sI64sQI468s"

KELF: Final = {"version": "1.0", "target": "*", "graphs": [{"name": "sg00", "definition": "sg00/def.json"}]}
NEFF_JSON: Final = {
    "nodes": [
        {"op": "null", "name": "input", "attrs": {}},
        {"op": "tvm_op", "name": "__kelf", "attrs": {"func_name": "__kelf", "kelf": "kelf-0.json"}},
    ],
    "arg_nodes": [0],
    "heads": [[1, 0, 0]],
}


def as_json(value: object) -> bytes:
    """Write JSON as a packager would."""
    return json.dumps(value).encode()


def definition(**keys: Any) -> bytes:
    """Return a def.json with some collective keys; ``rank_world_size`` is the one that is spelled with a mark."""
    if "rank_world_size" in keys:
        keys["#rank_world_size"] = keys.pop("rank_world_size")
    return as_json({"name": "definition", "version": "0.6-", "var": {}, "dma_queue": {}, **keys})


def tar_member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: Any) -> bytes:
    """Return one entry of an archive in GNU's dialect: header and padded content; fields overwrite those of the header."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def tar_of(members: Iterable[tuple[str, bytes]], dialect: int = tarfile.GNU_FORMAT) -> bytes:
    """Return an archive of files; a name with a slash at its end is a folder."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=dialect) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name.rstrip("/"))
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def sealed(archive: bytes, *, pkg: int = 2, **fields: Any) -> bytes:
    """Put a header before an archive, which is compressed where the package says so; fields overwrite the header's."""
    data = gzip.compress(archive, 1, mtime=0) if pkg == 2 else archive
    digest = hashlib.md5(data).digest() + b"0" * 16 if pkg == 2 else hashlib.sha256(data).digest()
    values: dict[str, Any] = {
        "pkg_version": pkg,
        "header_size": 1024,
        "data_size": len(data),
        "neff_version_major": 2,
        "neff_version_minor": 0,
        "neff_build_version": b"2.0.test",
        "num_tpb": 1,
        "hash": digest,
        "uuid": bytes(range(16)),
        "name": b"step",
        "requested_tpb_count": 1,
        "tpb_per_node": bytes(64),
        "feature_bits": 0,
        "lnc_size": 1,
        "pad": bytes(468),
        **fields,
    }
    return struct.pack(LAYOUT, *values.values()) + data


def neff(
    definitions: bytes | Mapping[str, bytes], *, pkg: int = 2, dialect: int = tarfile.GNU_FORMAT, **fields: Any
) -> bytes:
    """Return a .neff with one def.json, or with several by the names of their members."""
    by_name = {"sg00/def.json": definitions} if isinstance(definitions, bytes) else definitions
    graphs = [{"name": name.split("/")[-2], "definition": name} for name in by_name]
    folders = [(f"{name.rpartition('/')[0]}/", b"") for name in by_name]
    files = [*by_name.items(), ("kelf-0.json", as_json({**KELF, "graphs": graphs})), ("neff.json", as_json(NEFF_JSON))]
    weights = [("sg00/weights.npy", bytes(700))]
    return sealed(tar_of([*folders, *sorted(files), *weights], dialect), pkg=pkg, **fields)
