"""Scenarios: what is read, what is set, what is refused."""

from pathlib import Path

import pytest

import coapace


def test_every_built_in_scenario_can_be_read() -> None:
    for name in coapace.scenarios():
        scenario = coapace.Scenario.load(name)
        assert scenario.name == name
        assert scenario.title and scenario.summary and scenario.seeds > 0
        assert len(scenario.hash) == 16


def test_a_setting_makes_another_scenario_and_leaves_the_first_as_it_was() -> None:
    first = coapace.Scenario.load("nb-iot")
    second = first.set("clients", 400).set("workload", "random")
    assert (first.knobs["clients"], second.knobs["clients"]) == ("10", "400")
    assert second.knobs["workload"] == "random"
    assert first.hash != second.hash
    assert second.hash == first.set("workload", "random").set("clients", "400").hash
    assert "clients.count = 400\n" in second.canonical()


def test_values_of_python_are_written_as_in_files() -> None:
    scenario = coapace.Scenario.load("nb-iot")
    assert "server.deduplication = true\n" in scenario.set("server.deduplication", True).canonical()
    jitter = scenario.set("network.up.backhaul.jitter", ["5 ms", "7 ms"]).canonical()
    assert "network.up.backhaul.jitter" in jitter and jitter != scenario.canonical()


def test_knobs_with_names_tell_them() -> None:
    scenario = coapace.Scenario.load("nb-iot")
    assert scenario.choices("errors") == ["none", "low", "medium", "high"]
    assert scenario.choices("clients") == []


def test_a_file_and_its_text_are_one_scenario(tmp_path: Path) -> None:
    text = """title = "Two hops"
summary = "A slow radio both ways."
source = "Made up."

[clients]
count = 3

[server]
payload_bytes = 60

[workload]
kind = "continuous"
exchanges = 5

[network]
up = [{ name = "radio", rate = "20 kbit/s", buffer_bytes = 2000, delay = "100 ms" }]
down = [{ name = "radio", rate = "20 kbit/s", buffer_bytes = 2000, delay = "100 ms" }]
"""
    path = tmp_path / "two.toml"
    path.write_text(text)
    assert coapace.Scenario.load(str(path)).hash == coapace.Scenario.load(text).hash


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("nb-iott", "nb-iott: neither a built-in scenario nor a file; did you mean `nb-iot`?"),
        ("title = 1\n", "the text:1"),
    ],
)
def test_a_wrong_scenario_is_refused_with_the_sentence_of_the_command(source: str, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        coapace.Scenario.load(source)
    assert str(refused.value).startswith(sentence)


def test_a_wrong_setting_is_refused() -> None:
    scenario = coapace.Scenario.load("nb-iot")
    wrong: list[tuple[str, str | int]] = [("clientss", 4), ("clients", "many"), ("errors", "lots"), ("clients", 0)]
    for key, value in wrong:
        with pytest.raises(ValueError):
            scenario.set(key, value)
    with pytest.raises(TypeError, match="a value must be"):
        scenario.set("clients", object())  # type: ignore[arg-type]


def test_every_built_in_scenario_comes_back_from_its_file() -> None:
    for name in coapace.scenarios():
        scenario = coapace.Scenario.load(name)
        again = coapace.Scenario.load(scenario.to_toml())
        assert again.hash == scenario.hash and again.knobs == scenario.knobs, name
        assert (again.title, again.mechanisms, again.seeds) == (scenario.title, scenario.mechanisms, scenario.seeds)
        for knob in scenario.knobs:
            for choice in scenario.choices(knob):
                chosen = scenario.set(knob, choice)
                assert coapace.Scenario.load(chosen.to_toml()).hash == chosen.hash, (name, knob, choice)


def test_settings_come_back_from_a_file() -> None:
    scenario = coapace.Scenario.load("nb-iot").set("clients", 400).set("buffer", 2500).set("errors", "medium")
    scenario = scenario.set("network.up.backhaul.jitter", ["5 ms", "7 ms"]).set("server.deduplication", True)
    again = coapace.Scenario.load(scenario.to_toml())
    assert (again.hash, again.knobs) == (scenario.hash, scenario.knobs)
    assert again.set("errors", "none").hash == scenario.set("errors", "none").hash
