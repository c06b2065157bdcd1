"""Small frozen answers that read as attributes and as a mapping alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from dataclasses import Field
    from typing import ClassVar


class Record(Mapping[str, object]):
    """Base of frozen dataclasses whose fields are also the keys of a mapping, in their order.

    Two records are equal, and equal to a plain dict, when their keys and values are. Keys that start with an
    underscore are kept out of the mapping.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True, eq=False)
        ... class Size(Record):
        ...     rows: int
        ...     columns: int
        >>> size = Size(2, 4)
        >>> size.rows, size["columns"], dict(size), size == {"rows": 2, "columns": 4}
        (2, 4, {'rows': 2, 'columns': 4}, True)
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __getitem__(self, key: str) -> object:
        """Return the value of a key.

        Raises:
            KeyError: there is no such key.
        """
        if key not in self._keys():
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys in order."""
        return iter(self._keys())

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._keys())

    @classmethod
    def _keys(cls) -> tuple[str, ...]:
        return tuple(field.name for field in fields(cls) if not field.name.startswith("_"))
