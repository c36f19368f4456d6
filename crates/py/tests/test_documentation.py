"""The examples of docs/python.md and of guides, and that every public name is documented and tested, also where an editor looks."""

import ast
import inspect
import os
import re
from pathlib import Path
from typing import Any

import pytest

import coapace

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "python.md").read_text()
STUBS = ROOT / "crates" / "py" / "python" / "coapace" / "_native.pyi"


def examples(page: str = PAGE) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


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


@pytest.mark.parametrize("name", ["figures.md", "write-a-mechanism.md"])
def test_every_example_of_a_guide_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("plotly")
    monkeypatch.chdir(tmp_path)
    found = examples((ROOT / "docs" / name).read_text())
    assert found, "the page has no example"
    names: dict[str, Any] = {}
    for number, example in enumerate(found, 1):
        exec(compile(example, f"docs/{name}, example {number}", "exec"), names)


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


@pytest.mark.parametrize("name", public_attributes())
def test_a_page_names_every_public_name(name: str) -> None:
    word = name.rpartition(".")[2]
    code = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
    named = (span for page in ROOT.joinpath("docs").glob("*.md") for span in code.findall(page.read_text()))
    assert any(re.search(rf"\b{word}\b", span) for span in named), f"no page of docs/ names {name}"


def described(stubs: str) -> str:
    """Return the stubs with the docstrings of the extension, which an editor does not load."""
    lines = stubs.splitlines()
    for node in reversed([node for node in ast.parse(stubs).body if isinstance(node, ast.ClassDef)]):
        thing = getattr(coapace, node.name, None)
        if thing is None or getattr(coapace._native, node.name) is not thing:
            continue
        members = [member for member in node.body if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")]
        owners: list[ast.FunctionDef | ast.ClassDef] = [*reversed(members), node]
        for owner in owners:
            documented = thing if owner is node else getattr(thing, owner.name)
            assert documented.__doc__, f"{node.name}.{owner.name} has no docstring"
            text = inspect.cleandoc(documented.__doc__)
            indent = " " * (owner.col_offset + 4)
            end = f'\n{indent}"""' if "\n" in text else '"""'
            docstring = (f'{indent}"""' + text.replace("\n", f"\n{indent}") + end).splitlines()
            first = owner.body[0]
            if ast.get_docstring(owner) is not None:
                lines[first.lineno - 1 : first.end_lineno] = map(str.rstrip, docstring)
            else:
                lines[first.lineno - 1] = lines[first.lineno - 1].removesuffix(" ...")
                lines[first.lineno : first.lineno] = map(str.rstrip, docstring)
    return "\n".join(lines) + "\n"


def test_an_editor_shows_the_docstring_of_every_public_member() -> None:
    stubs = STUBS.read_text()
    right = described(stubs)
    if os.environ.get("BLESS"):
        STUBS.write_text(right)
    else:
        assert stubs == right, "rewrite it: BLESS=1, and this test"
