"""Objects that travel: pickle, copies, comparison, and the processes of joblib, multiprocessing and Dask."""

import copy
import json
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import pytest

import coapace

SMALL = coapace.Scenario.load("nb-iot").set("clients", 3)
RESULTS = coapace.run(SMALL, ["default", "cocoa"], seeds=2, progress=False)
PAIRS = coapace.coexist(
    coapace.Scenario.load("coexistence").set("clients", 10).set("workload.duration", "100 s"),
    ["default", "cocoa"],
    seeds=1,
    progress=False,
)
RANKING = coapace.rank([SMALL, "lossy-lan"], ["default", "cocoa"], seeds=2, progress=False)


class Patient(coapace.Controller):
    """Waits a little longer after each answer."""

    rto = 3.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patient) and self.rto == other.rto

    def on_start(self, cue: coapace.Cue) -> tuple[Any, float]:
        return None, self.rto

    def on_retransmit(self, exchange: Any, cue: coapace.Cue) -> float:
        return 2 * self.rto

    def on_end(self, exchange: Any, outcome: str, sample: coapace.Sample | None, cue: coapace.Cue) -> None:
        self.rto += 0.5


def first_hash(scenario: coapace.Scenario, seed: int) -> object:
    """Run a scenario: the work of another process."""
    return coapace.run(scenario, "cocoa", [seed], progress=False).runs["trace_hash"][0]


def whole(scenario: coapace.Scenario) -> coapace.Results:
    """Return results from another process."""
    return coapace.run(scenario, ["default", "cocoa"], seeds=2, progress=False)


@pytest.mark.parametrize(
    "thing",
    [SMALL, coapace.Mechanism("cocoa:k_strong=2"), RESULTS, RESULTS.runs, RESULTS.runs[1:2], RESULTS.series[:0], PAIRS, RANKING],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_pickled_or_copied_is_equal(thing: Any) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(thing, protocol)) == thing
    assert copy.copy(thing) == thing == copy.deepcopy(thing)
    assert thing != "another thing" and thing != RESULTS.clients


def test_results_that_were_pickled_have_the_same_tables_charts_and_words() -> None:
    results = pickle.loads(pickle.dumps(RESULTS))
    for name in ("cells", "runs", "clients", "series"):
        assert getattr(results, name) == getattr(RESULTS, name)
    assert results.charts == RESULTS.charts
    paper = coapace.reproduce("raitahila2019", seeds=1, progress=False)
    again = pickle.loads(pickle.dumps(paper))
    assert (again.summary, again.orders, again.values) == (paper.summary, paper.orders, paper.values)
    assert pickle.loads(pickle.dumps(RANKING)).advice == RANKING.advice
    assert pickle.loads(pickle.dumps(PAIRS)).sentences == PAIRS.sentences


def test_equal_scenarios_and_mechanisms_have_equal_hashes() -> None:
    same = coapace.Scenario.load("nb-iot").set("clients", "3")
    assert (same, hash(same)) == (SMALL, hash(SMALL))
    assert same.set("clients", 4) != SMALL
    assert len({SMALL, same, pickle.loads(pickle.dumps(SMALL))}) == 1
    cocoa = coapace.Mechanism("cocoa")
    assert len({cocoa, coapace.Mechanism("cocoa:k_strong=4"), coapace.Mechanism("ebb")}) == 2
    assert str(cocoa) == "cocoa"


def test_a_copy_of_a_mechanism_has_learned_the_same_and_learns_on_its_own() -> None:
    coapace.register("py-travelling", Patient)
    for name in ("cocoa", "py-travelling"):
        mechanism = coapace.Mechanism(name)
        mechanism.acknowledge(mechanism.start(0.0), 0.7)
        twin = copy.deepcopy(mechanism)
        assert twin == mechanism and twin.rto == mechanism.rto
        twin.acknowledge(twin.start(1.0), 1.9)
        assert twin != mechanism


def test_a_mechanism_travels_with_its_object_of_python_and_else_before_its_first_step() -> None:
    coapace.register("py-travelling", Patient)
    patient = coapace.Mechanism("py-travelling")
    patient.acknowledge(patient.start(0.0), 0.7)
    assert pickle.loads(pickle.dumps(patient)).rto == 3.5
    cocoa = coapace.Mechanism("cocoa")
    cocoa.start(0.0)
    with pytest.raises(TypeError, match="before its first step"):
        pickle.dumps(cocoa)


def test_a_pickle_of_another_version_is_refused_with_a_line_that_says_what_to_do() -> None:
    things: list[Any] = [SMALL, coapace.Mechanism("cocoa"), RESULTS, RESULTS.runs]
    for thing in things:
        make, (version, *rest) = getattr(thing, "_native", thing).__reduce__()
        assert make(version, *rest)
        with pytest.raises(ValueError, match="made with coapace 0.0.9, and this process has .*: install the same version"):
            make("0.0.9", *rest)


def test_a_scenario_travels_without_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL.to_toml())
    scenario = coapace.Scenario.load(path)
    pickled = pickle.dumps(scenario)
    path.unlink()
    assert pickle.loads(pickled) == scenario
    assert pickle.loads(pickled).set("clients", 4).knobs["clients"] == "4"


def test_a_search_says_that_it_does_not_travel() -> None:
    found = coapace.search("default", {"ack_timeout": ["1s", "3s"]}, scenarios=9, brackets=1, progress=False)
    with pytest.raises(TypeError, match="a search cannot be pickled: pickle its tables"):
        pickle.dumps(found)
    assert found.to_csv() == found.evaluations.to_csv()


def test_joblib_runs_scenarios_in_other_processes() -> None:
    joblib = pytest.importorskip("joblib")
    expected = [first_hash(SMALL, seed) for seed in (1, 2)]
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(first_hash)(SMALL, seed) for seed in (1, 2)) == expected
    assert len({joblib.hash(SMALL), joblib.hash(pickle.loads(pickle.dumps(SMALL)))}) == 1


def test_processes_that_are_spawned_return_results() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(whole, (SMALL,)) == RESULTS


def test_a_future_of_dask_takes_a_scenario_and_returns_results() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, cluster.get_client() as client:
        results = client.submit(whole, SMALL).result(timeout=120)
    assert results == RESULTS


def test_the_notebook_of_a_data_engineer_runs() -> None:
    for module in ("joblib", "numpy", "pandas", "distributed", "plotly.express"):
        pytest.importorskip(module)
    notebook = json.loads((Path(__file__).parents[3] / "notebooks" / "parallel-by-hand.ipynb").read_text())
    # Functions of the main module are sent to other processes by value.
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert set(names["medians"]["mechanism"]) == {"default", "cocoa", "fasor", "patient"}
    assert len(names["runs"]) == 4 * 4 * 8
