"""Charts: which there are, what they show, and what is said without plotly."""

import sys

import pytest

import coapace

SCENARIO = coapace.Scenario.load("nb-iot").set("buffer", 2500).set("workload.exchanges", 5)
SWEEP = coapace.run(
    [SCENARIO.set("clients", clients) for clients in (5, 10)], ["default", "cocoa"], seeds=2, progress=False
)


def test_every_chart_is_a_figure() -> None:
    objects = pytest.importorskip("plotly.graph_objects")
    assert "fct-median-over-clients" in SWEEP.charts
    for name in SWEEP.charts:
        figure = SWEEP.plot(name)
        assert isinstance(figure, objects.Figure) and figure.data, name


def test_a_line_has_the_means_of_the_table() -> None:
    pytest.importorskip("plotly")
    assert SWEEP.plot().to_json() == SWEEP.plot("median_fct_s").to_json()
    seeds = [value for value in SWEEP.runs["median_fct_s"][:2] if isinstance(value, float)]
    line = next(trace for trace in SWEEP.plot().data if trace.name == "default")
    assert list(line.x) == [5, 10]
    assert line.y[0] == pytest.approx(sum(seeds) / 2, rel=1e-3)


def test_pairs_rankings_and_papers_have_charts_of_their_own() -> None:
    pytest.importorskip("plotly")
    scenario = coapace.Scenario.load("coexistence").set("clients", 10).set("workload.duration", "100 s")
    shared = coapace.coexist(scenario, ["default", "cocoa"], seeds=1, progress=False)
    assert shared.charts[:2] == ["coexistence-share", "coexistence-kept"]
    assert shared.plot().data[0].type == "heatmap"
    ranking = coapace.rank(SCENARIO.set("clients", 3), ["default", "cocoa"], seeds=1, progress=False)
    assert ranking.charts[0] == "worst"
    assert ranking.plot("median_fct_s").data[0].type == "heatmap"
    assert ranking.plot().layout.xaxis.ticktext[0] == "hindsight"
    paper = coapace.reproduce("raitahila2019", seeds=1, progress=False)
    assert paper.plot().layout.xaxis.title.text.startswith("published ")
    assert paper.plot("retransmissions_per_client").data


def test_a_chart_that_is_not_there_is_refused_with_the_names_of_those_that_are() -> None:
    pytest.importorskip("plotly")
    with pytest.raises(ValueError, match="`zzz` is not the name of a chart; the charts are fct-median-over-clients, "):
        SWEEP.plot("zzz")


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("plotly", "plot", lambda: SWEEP.plot()),
        ("pandas", "pandas", lambda: SWEEP.to_pandas()),
        ("pyarrow", "pandas", lambda: SWEEP.cells.to_arrow()),
        ("polars", "polars", lambda: SWEEP.to_polars()),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_installs_it(
    library: str, extra: str, call: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [library, f"{library}.io"]:
        monkeypatch.setitem(sys.modules, module, None)
    assert callable(call)
    with pytest.raises(ImportError) as missing:
        call()
    assert str(missing.value) == f"{library} is not installed: pip install 'coapace[{extra}]'"
