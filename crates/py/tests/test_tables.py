"""Tables: columns, other libraries, notebooks."""

import sys
from pathlib import Path

import pytest

import coapace

RESULTS = coapace.run(coapace.Scenario.load("nb-iot").set("clients", 3), ["default", "cocoa"], seeds=2, progress=False)


def test_a_table_has_columns_of_one_type_each() -> None:
    cells = RESULTS.cells
    assert len(cells) == 2 and list(cells) == [cells[0], cells[1]] and list(cells[0]) == cells.columns
    assert cells["mechanism"] == ["default", "cocoa"]
    assert all(isinstance(value, float) for value in cells["median_fct_s"])
    assert cells["clients"] == [3, 3]
    # Nothing was published for three clients.
    assert cells["relative_error"] == [None, None]
    with pytest.raises(KeyError, match="zzz"):
        cells["zzz"]


def test_a_table_is_a_sequence_of_rows() -> None:
    runs = RESULTS.runs
    assert [row["seed"] for row in runs] == runs["seed"] == [1, 2, 1, 2]
    assert (runs[-1]["mechanism"], len(runs[1:3]), len(runs[3:1]), runs[1:3]["seed"]) == ("cocoa", 2, 0, [2, 1])
    assert runs[:] == runs != runs[:2]
    assert "seed" in runs and "zzz" not in runs
    with pytest.raises(IndexError, match="there is no row 4; the table has 4"):
        runs[4]
    with pytest.raises(ValueError, match="no step"):
        runs[::2]
    assert len(RESULTS) == 2


def test_pandas_makes_the_right_frame_of_a_table_and_refuses_results() -> None:
    pandas = pytest.importorskip("pandas")
    for table in (RESULTS.runs, RESULTS.clients, RESULTS.runs[:1]):
        frame = pandas.DataFrame(table)
        assert list(frame.columns) == table.columns and len(frame) == len(table)
        # A column without any value has no type in rows.
        known = table.to_pandas().dropna(axis="columns", how="all")
        pandas.testing.assert_frame_equal(frame[known.columns], known, check_dtype=False)
    with pytest.raises((ValueError, TypeError)):
        pandas.DataFrame(RESULTS)


def test_csv_comes_back_as_it_was(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    runs = RESULTS.runs
    text = runs.to_csv()
    assert text == RESULTS.to_csv() and text is not None and text.startswith("workload,")
    assert runs.to_csv(tmp_path / "runs.csv") is None
    assert (tmp_path / "runs.csv").read_text() == text
    frame = pandas.read_csv(tmp_path / "runs.csv")
    assert frame["median_fct_s"].tolist() == runs["median_fct_s"] and frame["trace_hash"].astype(str).tolist()


def test_a_report_is_one_page(tmp_path: Path) -> None:
    RESULTS.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<html" in page and "nb-iot" in page and "cocoa" in page
    ranking = coapace.rank("lossy-lan", ["default", "cocoa"], 1, progress=False)
    ranking.to_html(str(tmp_path / "ranking.html"))
    assert "cocoa" in (tmp_path / "ranking.html").read_text()


def test_charts_are_files_of_the_size_that_is_asked_for(tmp_path: Path) -> None:
    results = coapace.run(
        [coapace.Scenario.load("nb-iot").set("clients", clients) for clients in (2, 3)], ["default", "cocoa"], 2, progress=False
    )
    some = results.to_figures(tmp_path / "some")
    assert len(list((tmp_path / "some").iterdir())) == 3 * some
    assert some < len(results.charts), "those of single conditions are left out"
    assert results.to_figures(tmp_path / "one", ["median_fct_s"], size="column", titles=False) == 1
    (one,) = (tmp_path / "one").glob("*.svg")
    assert ' width="336" ' in one.read_text()
    with pytest.raises(ValueError, match="`zzz` is not the name of a chart; the charts are "):
        results.to_figures(tmp_path / "one", "zzz")
    with pytest.raises(ValueError, match="must be page, column, double or slide"):
        results.to_figures(tmp_path / "one", size="huge")  # type: ignore[arg-type]


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
