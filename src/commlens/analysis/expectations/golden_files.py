"""Golden files: what a module communicates held against a text beside the test, and that text renewed on demand."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commlens.analysis.expectations.claims import ExpectationError, described, is_failed_claim, listed, unread_lines
from commlens.analysis.expectations.golden_texts import differences, golden_of, read_golden
from commlens.errors import InputError
from commlens.hlo import write_atomically

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Mapping, Sequence

    from commlens.analysis.expectations.golden_texts import Golden, GoldenLine
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row
    from commlens.topology import Mesh

__tracebackhide__: Final = is_failed_claim

_HOW: Final = "pytest --commlens-update, or golden(path, update=True)"

_RENEWAL: Final[ContextVar[Callable[[Path], None] | None]] = ContextVar("commlens_renewal", default=None)


@contextmanager
def renewing_goldens(said: Callable[[Path], None]) -> Generator[None]:
    """Let golden files be written instead of compared, in the current context alone.

    Args:
        said: called with the path of every file that was written; one that says the same already is left alone.

    Example:
        ``with renewing_goldens(print): expect(module).golden("golden/step.comm.txt")``
    """
    token = _RENEWAL.set(said)
    try:
        yield
    finally:
        _RENEWAL.reset(token)


def hold_against(report: Report, path: str | os.PathLike[str], *, update: bool | None = None) -> None:
    """Compare what a report says with a golden file, or renew the file.

    Args:
        report: the report.
        path: the file.
        update: whether to write the file instead of comparing; None: inside :func:`renewing_goldens`.

    Raises:
        ExpectationError: something could not be read, the file is missing, or it says something else.
        InputError: the file cannot be read or written, or is no golden file.
    """
    file = Path(path)
    if report.unread:
        lines = [f"{file}: expected a module of which everything can be read, found {len(report.collectives)} rows"]
        raise ExpectationError("\n".join([*lines, *unread_lines(report.unread)]))
    golden, rows = golden_of(report)
    said = _RENEWAL.get()
    if update or (update is None and said is not None):
        if _renew(file, golden) and said is not None:
            said(file)
        return
    recorded = _read(file)
    if recorded is None:
        msg = f"expected the golden file {file}, found none; make it with {_HOW}, and read it. It would say:\n{golden}"
        raise ExpectationError(msg)
    before = read_golden(recorded, path=str(file))
    if before != golden:
        raise ExpectationError("\n".join(_stale(file, before, golden, rows, report.mesh)))


def _stale(
    file: Path, before: Golden, after: Golden, rows: Mapping[GoldenLine, Sequence[Row]], mesh: Mesh | None
) -> Generator[str]:
    lines, grown = differences(before, after)
    yield f"{file}: expected what the golden file (-) says, found other communication (+)"
    yield from (f"  {line}" for line in lines)
    if grown:
        yield "where there is more:"
        yield from listed([described(row, mesh) for line in grown for row in rows[line]])
    yield f"if that is meant, renew the file with {_HOW}"


def _renew(file: Path, golden: Golden) -> bool:
    """Write a golden file unless it says the same already; return whether it was written."""
    try:
        recorded = _read(file)
        if recorded is not None and read_golden(recorded, path=str(file)) == golden:
            return False
    except InputError:
        pass  # whatever stands there is replaced
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, str(golden).encode("utf-8", "backslashreplace"))
    except OSError as error:
        reason = f"the golden file cannot be written there: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, path=str(file)) from error
    return True


def _read(file: Path) -> str | None:
    """Return what a golden file holds; None where there is none."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = f"the golden file cannot be read: {error}"
        raise InputError(reason, path=str(file)) from error
