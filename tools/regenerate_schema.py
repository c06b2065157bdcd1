"""Generate the protobuf classes of ``src/commlens/hlo/proto/schema`` anew.

Run it in an environment with the dependency group ``protos``. Code of the oldest supported generator (that of protobuf
5.26, in grpcio-tools 1.64) is what loads with every supported protobuf: from 5.27 on, generated code refuses a runtime
that is two major versions newer.
"""

from __future__ import annotations

import re
import sys
from importlib import resources
from importlib.metadata import version
from pathlib import Path

from grpc_tools import protoc  # pyright: ignore[reportMissingModuleSource, reportMissingImports, reportUnknownVariableType]

SOURCE = Path(__file__).resolve().parents[1] / "src"
SCHEMA = "commlens/hlo/proto/schema/commlens_hlo.proto"
GENERATOR = "1.64."
BARE_MAPPING = re.compile(r"_Mapping(?=\])")  # strict type checkers want its parameters


def main() -> int:
    """Generate, unless the installed generator is another one than the checked-in code was made with."""
    installed = version("grpcio-tools")
    if not installed.startswith(GENERATOR):
        print(f"expected grpcio-tools {GENERATOR}* (pip install --group protos), found {installed}", file=sys.stderr)
        return 1
    includes = str(resources.files("grpc_tools") / "_proto")
    arguments = ["protoc", f"-I{SOURCE}", f"-I{includes}", f"--python_out={SOURCE}", f"--pyi_out={SOURCE}", SCHEMA]
    failed = int(protoc.main(arguments))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if not failed:
        stub = (SOURCE / SCHEMA).with_name("commlens_hlo_pb2.pyi")
        stub.write_text(BARE_MAPPING.sub("_Mapping[str, object]", stub.read_text()))
    return failed


if __name__ == "__main__":
    sys.exit(main())
