"""For pytest: golden files of what programs communicate, beside the tests. Loaded by pytest's entry point alone.

Nothing of the analysis is imported before a test asks for it. There is no state between tests and none between
processes: each test reads or writes files of its own, in one step, and what it wrote travels in its report, so that
runs spread over many workers say the same as one. Assertions are not rewritten: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from commlens.analysis import AnyMesh

_OPTION: Final = "--commlens-update"
_WRITTEN: Final = "commlens golden file written"
_FOLDER: Final = "golden"
_SUFFIX: Final = ".comm.txt"
_STRANGE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_CHARS: Final = 120


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what renews golden files."""
    parser.getgroup("commlens").addoption(
        _OPTION,
        action="store_true",
        default=False,
        help="write golden files of communication instead of comparing with them",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let golden files be written while a test runs, and keep in its report which ones were."""
    if not item.config.getoption(_OPTION):
        return (yield)
    from commlens.analysis import renewing_goldens

    with renewing_goldens(lambda path: item.user_properties.append((_WRITTEN, _shown(path, item.config.rootpath)))):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which golden files were written."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    properties = [each for report in reports for each in getattr(report, "user_properties", ())]
    written = sorted({value for name, value in properties if name == _WRITTEN})
    if written:
        terminalreporter.write_sep("=", f"commlens: golden files written: {len(written)}")
        for path in written:
            terminalreporter.write_line(path)
        terminalreporter.write_line("read them before you commit them")
    elif terminalreporter.config.getoption(_OPTION):
        terminalreporter.write_sep("=", "commlens: no golden file had to be written")


@dataclass(frozen=True, slots=True)
class GoldenFiles:
    """The golden files of one test: call it with what is to communicate as recorded.

    Attributes:
        stem: the path that its files begin with.
    """

    stem: Path
    _used: set[Path] = field(default_factory=set[Path], init=False, repr=False)

    def __call__(
        self,
        about: object,
        mesh: AnyMesh | None = None,
        *,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
        name: str | None = None,
    ) -> None:
        """Compare a program with its golden file, or write that under ``--commlens-update``.

        Args:
            about: whatever :func:`commlens.expect` takes, or what it returned.
            mesh: the mesh that names axes, likewise.
            args: arguments for which a jitted function is compiled.
            kwargs: keyword arguments likewise.
            name: tells several programs of one test apart.

        Raises:
            ExpectationError: the file is missing, or says something else.
            CommlensError: two programs of one test have the same name; errors of :func:`commlens.expect`.
        """
        __tracebackhide__ = True  # what failed is what the test asked for here
        from commlens.analysis import expect
        from commlens.errors import CommlensError

        path = self.path(name)
        if path in self._used:
            msg = f"expected one program for {path.name}, found a second one; tell them apart with name=..."
            raise CommlensError(msg)
        self._used.add(path)
        expect(about, mesh, args=args, kwargs=kwargs).golden(path)

    def path(self, name: str | None = None) -> Path:
        """Return the file of a program."""
        return self.stem.with_name(f"{self.stem.name}{'' if name is None else f'+{_safe(name)}'}{_SUFFIX}")


@pytest.fixture
def commlens_golden(request: pytest.FixtureRequest) -> GoldenFiles:
    """Compare what a program communicates with ``golden/<file>.<test>.comm.txt`` beside the test."""
    return GoldenFiles(request.path.parent / _FOLDER / _test_name(request.node))


def _test_name(node: pytest.Item) -> str:
    """Return a file name for a test: its file, its classes and its own name, parameters behind a dash."""
    function, bracket, parameters = node.name.partition("[")
    classes = [each.name for each in node.listchain() if isinstance(each, pytest.Class)]
    parts = [node.path.stem, *classes, f"{function}-{_safe(parameters[:-1])}" if bracket else function]
    return ".".join(parts)


def _safe(text: str) -> str:
    """Return a text as part of a file name: other texts get other names, also where case does not count."""
    safe = _STRANGE.sub("_", text)[:_MOST_CHARS]
    if safe == text and text and text == text.lower():
        return text
    return f"{safe}-{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _shown(path: Path, root: Path) -> str:
    """Return a path as people know it: from the root of the project where it lies below."""
    absolute = path.absolute()
    return absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else str(absolute)
