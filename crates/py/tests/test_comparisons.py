"""Papers, pairs and rankings: their tables and sentences."""

import pytest

import coapace

SMALL = coapace.Scenario.load("coexistence").set("clients", 10).set("workload.duration", "100 s")
PAIR = ["default", "cocoa"]


def test_a_paper_is_reproduced_with_its_values_and_orders_beside_the_measured_ones() -> None:
    assert set(coapace.papers()) >= {"raitahila2019", "meng2017", "betzler2015"}
    paper = coapace.reproduce("raitahila2019", seeds=1, progress=False)
    assert isinstance(paper, coapace.Reproduction) and isinstance(paper, coapace.Results)
    assert paper.summary.startswith("raitahila2019 published values: ")
    values = paper.values.to_dict()
    for measured, published, error in zip(values["measured"], values["published"], values["relative_error"]):
        assert isinstance(measured, float) and isinstance(published, float)
        assert error == pytest.approx(measured / published - 1)
    assert len(paper.values) > 50 and set(paper.orders["verdict"]) <= {"held", "inconclusive", "not held"}
    assert "<p>raitahila2019 published values: " in paper._repr_html_()
    assert repr(paper).startswith("<Reproduction: ")
    # The cells that the values belong to.
    assert values["mechanism"][0] == paper.cells["mechanism"][int(str(values["cell"][0]))]


def test_what_cannot_be_reproduced_is_refused_with_the_sentence_of_the_command() -> None:
    with pytest.raises(ValueError, match="`x` is not the name of a paper; the papers are raitahila2019, "):
        coapace.reproduce("x")
    with pytest.raises(ValueError, match="give quick or seeds"):
        coapace.reproduce("meng2017", quick=True, seeds=2)
    with pytest.raises(ValueError, match="seeds is 0"):
        coapace.reproduce("meng2017", seeds=0)
    with pytest.raises(ValueError, match="did you mean cocoa"):
        coapace.reproduce("meng2017", mechanisms="cocoaa")


def test_every_two_mechanisms_meet() -> None:
    shared = coapace.coexist(SMALL, PAIR, seeds=2, progress=False)
    assert isinstance(shared, coapace.Coexistence)
    assert shared.pairs["mechanism"] == ["default", "default", "cocoa", "cocoa"]
    assert shared.pairs["runs"] == [2, 2, 2, 2]
    share = [value for value in shared.pairs["relative_share"] if isinstance(value, float)]
    assert share[1] + share[2] == pytest.approx(2)
    assert any(sentence.startswith("Takes the most: ") for sentence in shared.sentences)
    assert shared.sentences[0].split(":")[0] in shared._repr_html_()
    assert repr(shared) == "<Coexistence: 4 encounters>"
    with pytest.raises(ValueError, match="a pair needs two mechanisms"):
        coapace.coexist(SMALL, ["cocoa"])


def test_a_ranking_is_over_suites_and_loaded_scenarios() -> None:
    loaded = coapace.Scenario.load("nb-iot").set("clients", 3).set("workload.exchanges", 5)
    ranking = coapace.rank([loaded, "lossy-lan"], [*PAIR, "linux-rto"], seeds=2, progress=False)
    assert isinstance(ranking, coapace.Ranking)
    assert set(ranking.ratios["scenario"]) == {"nb-iot", "lossy-lan"}
    assert ranking.standings["mechanism"][-1] == "linux-rto"
    assert ranking.standings["section"] == ["published", "published", "undithered"]
    assert ranking.advice is not None and ranking.advice.startswith("Use ")
    assert "<p>Use " in ranking._repr_html_() and "<p>Best in hindsight, " in ranking._repr_html_()
    assert repr(ranking).startswith("<Ranking: 3 mechanisms, ")
    for wrong, sentence in [("linux-rto", "none is among these"), ("cocoa", "named twice")]:
        with pytest.raises(ValueError, match=sentence):
            coapace.rank(loaded, [wrong, wrong] if wrong == "cocoa" else [wrong])
    with pytest.raises(ValueError, match="a suite is published, "):
        coapace.rank("nowhere", PAIR)


def test_hindsight_has_the_best_of_each_cell() -> None:
    loaded = coapace.Scenario.load("nb-iot").set("clients", 3).set("workload.exchanges", 5)
    ranking = coapace.rank([loaded, "lossy-lan"], [*PAIR, "ebb"], seeds=2, progress=False)
    assert ranking.hindsight["name"] == ["hindsight", "hindsight*"]
    assert ranking.hindsight.columns[1:] == [name for name in ranking.standings.columns[2:] if not name.startswith("metrics")]
    means = [mean for mean in ranking.hindsight["geometric_mean"] if isinstance(mean, float)]
    best = min(mean for mean in ranking.standings["geometric_mean"] if isinstance(mean, float))
    assert means[1] <= min(means[0], best)
    single = coapace.rank(loaded, PAIR, seeds=2, progress=False)
    assert len(single.hindsight) == 0 and "hindsight" not in single._repr_html_()


def test_mechanisms_written_in_python_meet_others() -> None:
    class Slow(coapace.Controller):
        """Waits 9 s."""

        rto = 9.0

        def on_start(self, cue: coapace.Cue) -> tuple[object, float]:
            return None, 9.0

        def on_retransmit(self, exchange: object, cue: coapace.Cue) -> float:
            return 9.0

        def on_end(self, exchange: object, outcome: str, sample: coapace.Sample | None, cue: coapace.Cue) -> None:
            pass

    coapace.register("py-slow", Slow)
    assert "py-slow" in coapace.coexist(SMALL, ["default", "py-slow"], seeds=1, progress=False).pairs["rival"]
