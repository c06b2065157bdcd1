"""JSON that every reader takes."""

from __future__ import annotations

import json


def to_json(value: object) -> str:
    r"""Return a JSON value on one line, in ASCII.

    Raises:
        ValueError: a number is infinite or not a number at all, which JSON cannot say.

    Example:
        >>> to_json({"name": "é", "ids": [[0, 2**70]]})
        '{"name": "\\u00e9", "ids": [[0, 1180591620717411303424]]}'
    """
    return json.dumps(value, allow_nan=False)
