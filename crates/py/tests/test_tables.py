"""Tables: columns, other libraries, notebooks."""

import sys
from pathlib import Path

import pytest

import coapace

RESULTS = coapace.run(coapace.Scenario.load("nb-iot").set("clients", 3), ["default", "cocoa"], seeds=2, progress=False)


def test_a_table_has_columns_of_one_type_each() -> None:
    cells = RESULTS.cells
    assert len(cells) == 2 and list(cells) == cells.columns
    assert cells["mechanism"] == ["default", "cocoa"]
    assert all(isinstance(value, float) for value in cells["median_fct_s"])
    assert cells["clients"] == [3, 3]
    # Nothing was published for three clients.
    assert cells["relative_error"] == [None, None]
    with pytest.raises(KeyError, match="zzz"):
        cells["zzz"]


def test_each_client_has_a_row() -> None:
    clients = RESULTS.clients
    assert len(clients) == 2 * 2 * 3
    assert set(clients["seed"]) == {1, 2} and set(clients["client"]) == {0, 1, 2}
    assert all(isinstance(fct, float) and fct > 0 for fct in clients["fct_s"])


def test_pandas_polars_and_pyarrow_read_what_the_table_holds() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for table in (RESULTS.cells, RESULTS.runs, RESULTS.clients):
        frames = [table.to_pandas(), table.to_polars(), table.to_arrow()]
        assert isinstance(frames[0], pandas.DataFrame)
        assert isinstance(frames[1], polars.DataFrame)
        assert isinstance(frames[2], pyarrow.Table)
        assert list(frames[0].columns) == frames[1].columns == frames[2].column_names == table.columns
        assert frames[1].to_dict(as_series=False) == frames[2].to_pydict() == table.to_dict()
    assert polars.DataFrame(RESULTS).shape[0] == 2
    assert pyarrow.schema(RESULTS.cells).names == RESULTS.cells.columns


def test_pandas_needs_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    expected = RESULTS.clients.to_dict()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = RESULTS.clients.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.to_dict("list") == expected


def test_a_long_table_is_cut_in_a_notebook() -> None:
    results = coapace.run(coapace.Scenario.load("nb-iot").set("clients", 25), "default", seeds=1, progress=False)
    shown = results.clients._repr_html_()
    assert shown.endswith("<p>20 of 25 rows</p>") and shown.count("<tr>") == 21


def test_parquet_comes_back_as_it_was(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(OSError, match="cannot write"):
        RESULTS.to_parquet(tmp_path / "nowhere" / "runs.parquet")
    RESULTS.to_parquet(tmp_path / "runs.parquet")
    assert polars.read_parquet(tmp_path / "runs.parquet").to_dict(as_series=False) == RESULTS.runs.to_dict()


def test_a_notebook_shows_what_is_known_and_no_code_of_names() -> None:
    shown = RESULTS._repr_html_()
    assert "<td>cocoa</td>" in shown and "median_fct_s" in shown
    assert "relative_error" not in shown
    assert repr(RESULTS) == "<Results: 2 cells, 4 runs>"
    assert repr(RESULTS.runs).startswith("<Table: 4 rows")
