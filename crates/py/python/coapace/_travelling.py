"""Objects of Rust in the clothes of Python: they travel, are copied and are compared as what they wear them over."""

from __future__ import annotations

from typing import Any, TypeVar

_T = TypeVar("_T", bound="Travelling")


class Travelling:
    """What never changes, and is all in its native part."""

    _native: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._native,)

    def __copy__(self: _T) -> _T:
        return self

    def __deepcopy__(self: _T, memo: dict[int, Any]) -> _T:
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Travelling):
            return NotImplemented
        return bool(self._native == other._native)

    __hash__ = None  # type: ignore[assignment]
