"""Searches for parameters: the same from threads, from the command, and after a stop."""

import inspect
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import coapace
from coapace import _native

COMMAND = os.environ.get("COAPACE_COMMAND")

VARY = {"ack_timeout": ["1s", "2s", "4s"]}

#: The networks of this seed are small: a search takes seconds.
SMALL: dict[str, Any] = {"scenarios": 9, "generator_seed": 11, "progress": False}
OPTIONS = ["--scenarios", "9", "--generator-seed", "11", "--quiet"]


def find(journal: Path, **more: Any) -> coapace.Search:
    return coapace.search("default", VARY, journal=journal, **{**SMALL, "brackets": 2, **more})


def test_a_search_finds_a_mechanism_that_can_be_run_and_has_tables(tmp_path: Path) -> None:
    found = find(tmp_path / "journal")
    assert isinstance(found, coapace.Search)
    evaluations = found.evaluations
    assert evaluations.columns[:4] == ["mechanism", "parameter.ack_timeout", "scenarios", "loss"]
    assert evaluations["scenarios"] == [9] * 3 + [3] * 3 + [1] * 3
    assert (found.best, found.loss) == (evaluations["mechanism"][0], evaluations["loss"][0])
    assert found.best == f"default:ack_timeout={evaluations['parameter.ack_timeout'][0]}"
    assert evaluations["unfair"][3:] == [None] * 6, "shares are measured with all networks alone"
    assert coapace.run("lossy-lan", found.best, seeds=1, progress=False).runs["mechanism"] == [found.best]
    assert repr(found) == f"<Search: {found.best}, loss {found.loss:.4f}, 9 evaluations>"
    assert found._repr_html_().startswith(f"<p>{found.best}: loss {found.loss:.4f}</p><table>")

    ratios = found.ratios.to_dict()
    assert len(ratios["mechanism"]) == 27 and ratios["scenario"][:10] == [*range(9), 0]
    of_best = [row for row, mechanism in enumerate(ratios["mechanism"]) if mechanism == found.best]
    worst = [max(ratios[cost][row] for row in of_best) for cost in ("mean_fct", "p90_fct", "transmissions")]  # type: ignore[type-var]
    assert max(worst) == evaluations["worst"][0]  # type: ignore[type-var]
    shares = found.shares.to_dict()
    own = [share for share, mechanism in zip(shares["share"], shares["mechanism"], strict=True) if mechanism == found.best]
    assert len(own) == 4 and min(own) == evaluations["least_share"][0]  # type: ignore[type-var]
    yardsticks = found.yardsticks.to_dict()
    assert yardsticks["scenario"] == [*range(9)] and yardsticks["description"] == ratios["description"][:9]
    assert set(yardsticks["mean_fct_best"]) <= set(coapace.mechanisms())

    pytest.importorskip("pandas")
    assert found.to_pandas()["loss"].to_list() == evaluations["loss"]
    polars = pytest.importorskip("polars")
    assert found.to_polars().equals(polars.DataFrame(found))
    found.to_parquet(tmp_path / "evaluations.parquet")
    assert polars.read_parquet(tmp_path / "evaluations.parquet").equals(found.to_polars())


def test_a_search_is_the_same_on_any_number_of_threads_and_after_a_stop(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    one = find(tmp_path / "one", jobs=1, progress=lambda done, runs: told.append((done, runs)))
    assert told == sorted(told) and told[-1][0] == told[-1][1]
    whole = (tmp_path / "one").read_bytes()
    two = find(tmp_path / "two", jobs=2)
    assert (tmp_path / "two").read_bytes() == whole
    assert two.text(each=True) == one.text(each=True) and two.evaluations.to_dict() == one.evaluations.to_dict()

    lines = whole.splitlines(keepends=True)
    (tmp_path / "killed").write_bytes(b"".join(lines[:-3]) + lines[-3][:40])
    assert find(tmp_path / "killed").text() == one.text()
    assert (tmp_path / "killed").read_bytes() == whole, "only what was cut off is measured again"
    # Without a journal nothing is kept.
    assert coapace.search("default", VARY, brackets=2, **SMALL).text() == one.text()


def test_meshes_have_costs_of_their_own(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    found = coapace.search(["ebb", "default"], networks="meshes", journal=journal, **SMALL)
    assert {"delivery", "delay", "transmissions"} <= set(found.evaluations.columns)
    assert found.yardsticks.columns[2:6] == ["delivery_s", "delivery_best", "delay_s", "delay_best"]
    assert len(found.shares["share"]) == 0
    with pytest.raises(ValueError, match="networks: meshes"):
        coapace.search("ebb", journal=journal, **SMALL)
    with pytest.raises(ValueError, match='"mixed" or "meshes"'):
        coapace.search("ebb", networks="links", progress=False)


def test_ctrl_c_ends_a_search_within_a_second_and_the_journal_keeps_what_was_measured(tmp_path: Path) -> None:
    journal, ended = tmp_path / "journal", 0.0

    def stop(done: int, runs: int) -> None:
        nonlocal ended
        if journal.read_bytes().count(b"\n") > 12 and not ended:
            ended = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        find(journal, progress=stop)
    assert time.monotonic() - ended < 1
    kept = journal.read_bytes()
    assert kept.count(b"\n") > 12
    find(journal)
    assert journal.read_bytes().startswith(kept) and len(journal.read_bytes()) > len(kept)


def test_a_journal_is_refused_while_a_search_writes_it_and_not_after_that(tmp_path: Path) -> None:
    journal, refused = tmp_path / "journal", 0

    def again(done: int, runs: int) -> None:
        nonlocal refused
        with pytest.raises(ValueError, match="journal: this journal is in use: wait until"):
            find(journal)
        refused += 1

    found = find(journal, progress=again)
    assert refused
    assert find(journal).text() == found.text()


@pytest.mark.skipif(COMMAND is None, reason="COAPACE_COMMAND does not name the command")
def test_the_command_finds_the_same_and_goes_on_with_a_journal_of_python(tmp_path: Path) -> None:
    assert COMMAND is not None
    ours = find(tmp_path / "python")
    whole = (tmp_path / "python").read_bytes()
    (tmp_path / "both").write_bytes(b"".join(whole.splitlines(keepends=True)[:-5]))
    options = ["default", "--vary", "ack_timeout=1s|2s|4s", "--brackets", "2", *OPTIONS]
    for journal in ("command", "both"):
        line = [COMMAND, "search", *options, "--journal", str(tmp_path / journal)]
        assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == ours.text()
        assert (tmp_path / journal).read_bytes() == whole
    compared = coapace.search(["ebb", "default"], **SMALL)
    line = [COMMAND, "search", "ebb", "default", "--each", *OPTIONS]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == compared.text(each=True)


@pytest.mark.skipif(COMMAND is None, reason="COAPACE_COMMAND does not name the command")
def test_defaults_and_sentences_are_those_of_the_command() -> None:
    assert COMMAND is not None
    usage = subprocess.run([COMMAND, "search", "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("scenarios", "generator_seed", "brackets", "seed"):
        default = inspect.signature(coapace.search).parameters[name].default
        option = name.replace("_", "-")
        assert re.search(rf"--{option} <N>[^-]* \[default: {default}\]", " ".join(usage.split())), name
    wrong: list[tuple[list[str], dict[str, Any]]] = [
        (["default", "--scenarios", "3"], {"scenarios": 3}),
        (["default", "ebb", "--vary", "ack_timeout=1s|2s"], {"mechanisms": ["default", "ebb"], "vary": "ack_timeout=1s|2s"}),
        (["default", "--vary", "ack_timeout=4s..1s"], {"vary": {"ack_timeout": "4s..1s"}}),
        (["cocoaa"], {"mechanisms": "cocoaa"}),
    ]
    for options, arguments in wrong:
        refused = subprocess.run([COMMAND, "search", *options], capture_output=True, text=True)
        with pytest.raises(ValueError) as told:
            coapace.search(**{"mechanisms": "default", **arguments})
        # Other tests have registered mechanisms, which this process lists, too.
        sentence = str(told.value).partition(" There are ")[0]
        assert refused.returncode == 2 and sentence in refused.stderr


def test_mechanisms_are_compared_in_their_order() -> None:
    compared = coapace.search(["default", "ebb"], **SMALL)
    assert compared.best == "ebb" and compared.evaluations["mechanism"] == ["ebb", "default"]
    assert re.findall(r"^\w\S*$", compared.text(), re.MULTILINE) == ["default", "ebb"]


def test_an_exception_of_a_mechanism_ends_the_search_and_is_not_kept(tmp_path: Path) -> None:
    class Broken(coapace.Controller):
        def on_start(self, cue: coapace.Cue) -> tuple[None, float]:
            raise RuntimeError("no more")

        def on_retransmit(self, exchange: None, cue: coapace.Cue) -> float:
            return 2.0

        def on_end(self, exchange: None, outcome: str, sample: coapace.Sample | None, cue: coapace.Cue) -> None:
            pass

    coapace.register("broken-in-a-search", Broken, "raises")
    with pytest.raises(RuntimeError, match="no more"):
        coapace.search("broken-in-a-search", journal=tmp_path / "journal", **SMALL)
    assert b"broken" not in (tmp_path / "journal").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"scenarios": 3}, ValueError, "scenarios is 3, but must be from 9 to 10000"),
        ({"vary": VARY, "brackets": 0}, ValueError, "brackets is 0, but must be at least 1"),
        ({"mechanisms": []}, ValueError, "name a mechanism"),
        ({"mechanisms": "default+ebb"}, ValueError, "is not one mechanism over UDP"),
        ({"vary": ["ack_timeout"]}, ValueError, "is neither PARAMETER=VALUE"),
        ({"vary": {"zzz": [1, 2]}}, ValueError, "zzz"),
        ({"journal": "/"}, IsADirectoryError, "Is a directory: '/'"),
        ({"journal": __file__}, ValueError, "test_search.py: this is not a journal of a search: name another file"),
    ],
)
def test_what_cannot_be_searched_is_told(arguments: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        coapace.search(**{"mechanisms": "default", "progress": False, **arguments})


def test_pieces_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match="the search was made with coapace 0.0, and this process has .*: install the same version"):
        _native.measure(("0.0", "mixed", 1, 9, [("default", 0)]))
