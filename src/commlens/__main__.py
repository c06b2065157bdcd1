"""``python -m commlens``."""

from __future__ import annotations

import sys

from commlens.cli import main

if __name__ == "__main__":
    sys.exit(main())
