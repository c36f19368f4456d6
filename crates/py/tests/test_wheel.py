"""The installed wheel: one for every later Python, with its types and licences, and nothing that is not needed to run."""

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import PurePosixPath

import pytest


@pytest.fixture
def installed() -> Distribution:
    try:
        return distribution("coapace")
    except PackageNotFoundError:
        pytest.skip("the package is not installed from a wheel")


def test_one_wheel_serves_every_later_python(installed: Distribution) -> None:
    tags = [line for line in (installed.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    assert tags and all(tag.startswith("Tag: cp310-abi3-") for tag in tags), tags


def test_it_has_types_and_licences_and_no_sources(installed: Distribution) -> None:
    files = [PurePosixPath(file) for file in installed.files or [] if "__pycache__" not in file.parts]
    names = {file.name for file in files}
    assert names >= {"py.typed", "_native.pyi", "LICENSE-MIT", "LICENSE-APACHE"}
    assert {file.suffix for file in files if file.parts[0] == "coapace"} <= {".py", ".pyi", ".typed", ".so", ".pyd"}
    assert len([file for file in files if file.suffix in {".so", ".pyd"}]) == 1
    outside = [file for file in files if not file.parts[0].startswith("coapace")]
    assert [file.parts[-2:] for file in outside] == [("bin", "coapace")], "the command, and nothing else"
