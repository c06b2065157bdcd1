"""Values of options."""

from __future__ import annotations

import click
import pytest

from commlens.cli.options import read_bytes

CONTEXT = click.Context(click.Command("report"))
PARAMETER = click.Option(["--max-bytes"])


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("1000 B", 1000), ("2k", 2 << 10), ("512MiB", 512 << 20), ("8G", 8 << 30), ("1 TB", 1 << 40)],
)
def test_bytes(text: str, number: int) -> None:
    """Numbers of bytes are read in binary units, in the spellings that people use."""
    assert read_bytes(CONTEXT, PARAMETER, text) == number


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5G", "1X", "G", "\u0661", "1" * 30])
def test_no_bytes(text: str) -> None:
    """Anything else is refused, with an example."""
    with pytest.raises(click.BadParameter, match="expected bytes such as"):
        read_bytes(CONTEXT, PARAMETER, text)
