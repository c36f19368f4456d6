"""The examples of docs/python.md, and that every public name is documented and tested."""

import re
from pathlib import Path
from typing import Any

import pytest

import coapace

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text()


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, example in enumerate(examples(), 1):
        exec(compile(example, f"docs/python.md, example {number}", "exec"), names)
    assert (tmp_path / "rto.html").stat().st_size > 1000
    scenario = coapace.Scenario.load("nb-iot").set("buffer", 2500)
    assert_twins(scenario.set("errors", "high"))
    assert_twins(scenario.set("clients", 100))
    assert_twins(coapace.Scenario.load("lossy-lan"))


def assert_twins(scenario: coapace.Scenario) -> None:
    runs = coapace.run(scenario, ["cocoa", "py-cocoa"], seeds=3, progress=False).runs
    hashes = runs["trace_hash"]
    assert hashes[:3] == hashes[3:], scenario
    retransmissions = [value for value in runs["retransmissions"] if isinstance(value, (int, float))]
    assert sum(retransmissions) > 0, "a run without a retransmission would tell little"


def public_attributes() -> list[str]:
    names = []
    for name in coapace.__all__:
        thing = getattr(coapace, name)
        names.append(name)
        if isinstance(thing, type):
            # Members that a class inherits from one of Python's own are documented there.
            own = [vars(base) for base in thing.__mro__ if base.__module__.startswith("coapace")]
            public = {attribute for attributes in own for attribute in attributes if not attribute.startswith("_")}
            names += [f"{name}.{attribute}" for attribute in sorted(public)]
    return names


@pytest.mark.parametrize("name", public_attributes())
def test_every_public_name_is_documented_and_tested(name: str) -> None:
    owner, _, attribute = name.partition(".")
    thing = getattr(coapace, owner)
    used = re.compile(rf"\.{attribute}\b|\"{attribute}\"|\b{attribute} =|def {attribute}\b" if attribute else rf"\b{owner}\b")
    here = Path(__file__)
    sources = [path.read_text() for path in here.parent.glob("test_*.py") if path != here] + examples()
    assert any(used.search(source) for source in sources), "no test uses it"
    if attribute and not callable(getattr(thing, attribute)) and not hasattr(type(getattr(thing, attribute)), "__get__"):
        # A plain value of a class has a comment of the form `#:` in its file.
        return
    documented = getattr(thing, attribute) if attribute else thing
    assert documented.__doc__, "it has no docstring"
