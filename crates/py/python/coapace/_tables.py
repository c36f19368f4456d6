"""Tables."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coapace import _native
from coapace._extras import needed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: A value of a table; None where it is unknown.
Value = str | float | int | bool | None

#: The most rows that a notebook shows.
_SHOWN = 20


class Table:
    """Columns with names and one type each.

    pandas, polars, pyarrow and DuckDB take it as it is, by Arrow's PyCapsule interface; none of them is needed.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._native)

    def __getitem__(self, column: str) -> list[Value]:
        """Return the values of a column."""
        return self._native.column(column)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the columns, as a dict does over its keys."""
        return iter(self.columns)

    def to_dict(self) -> dict[str, list[Value]]:
        """Return the columns by name."""
        return {column: self[column] for column in self.columns}

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

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file. It needs no other library. Equal tables give equal bytes."""
        self._native.write_parquet(str(path))

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
        shown = {name: values[:_SHOWN] for name, values in self.to_dict().items()}
        shown = {name: values for name, values in shown.items() if any(value is not None for value in values)}
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in zip(*shown.values()))
        more = f"<p>{_SHOWN} of {len(self)} rows</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(text)}</td>"
