"""Tables."""

from __future__ import annotations

import csv
import html
import io
import operator
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from coapace import _native
from coapace._extras import needed
from coapace._travelling import Travelling

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: A value of a table; None where it is unknown.
Value = str | float | int | bool | None

#: The most rows that a notebook shows.
_SHOWN = 20


class Table(Travelling):
    """Columns with names and one type each.

    ``table["column"]`` is a list of values, ``table[0]`` a row as a dict, and ``table[10:20]`` a table of some rows; a loop goes over the
    rows. polars, pyarrow and DuckDB take it as it is, by Arrow's PyCapsule interface, and ``pandas.DataFrame(table)`` row by row; none
    of them is needed.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native: _native.Table = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._native)

    @overload
    def __getitem__(self, place: str) -> list[Value]: ...
    @overload
    def __getitem__(self, place: slice) -> Table: ...
    @overload
    def __getitem__(self, place: SupportsIndex) -> dict[str, Value]: ...
    def __getitem__(self, place: str | slice | SupportsIndex) -> list[Value] | Table | dict[str, Value]:
        """Return the values of a column by its name, a row by its number, or the table of a slice of rows."""
        if isinstance(place, str):
            return self._native.column(place)
        if isinstance(place, slice):
            first, end, step = place.indices(len(self))
            if step != 1:
                raise ValueError("a slice of rows has no step: to_pandas() and to_polars() can do more")
            return Table(self._native.slice(first, max(end - first, 0)))
        number = operator.index(place)
        row = number + len(self) if number < 0 else number
        if not 0 <= row < len(self):
            raise IndexError(f"there is no row {number}; the table has {len(self)}")
        return next(iter(self[row : row + 1]))

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over the rows."""
        columns = self.columns
        for row in zip(*(self._native.column(column) for column in columns), strict=True):
            yield dict(zip(columns, row, strict=True))

    def __contains__(self, column: object) -> bool:
        """Return whether there is a column of this name."""
        return column in self.columns

    def to_dict(self) -> dict[str, list[Value]]:
        """Return the columns by name."""
        return {column: self._native.column(column) for column in self.columns}

    def to_arrow(self) -> pyarrow.Table:
        """Return a table of pyarrow."""
        table: pyarrow.Table = needed("pyarrow", "pandas").table(self)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame of pandas."""
        frames = needed("pandas", "pandas")
        try:
            frame: pandas.DataFrame = self.to_arrow().to_pandas()
        except ImportError:
            frame = frames.DataFrame(self.to_dict())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return a data frame of polars."""
        frame: polars.DataFrame = needed("polars", "polars").DataFrame(self)
        return frame

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file. It needs no other library. Equal tables give equal bytes."""
        self._native.write_parquet(path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write a CSV file with a line of names, or return its text without ``path``. What is unknown is empty."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(self.columns)
        lines.writerows(map(_written, row.values()) for row in self)
        if path is None:
            return text.getvalue()
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
        return None

    def __arrow_c_schema__(self) -> object:
        """Arrow's PyCapsule interface."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook, without the columns that are empty."""
        shown = self[:_SHOWN].to_dict()
        shown = {name: values for name, values in shown.items() if any(value is not None for value in values)}
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*shown.values()))
        more = f"<p>{_SHOWN} of {len(self)} rows</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _written(value: Value) -> Value:
    """Return a value as the command's CSV has it."""
    return str(value).lower() if isinstance(value, bool) else value


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(text)}</td>"
