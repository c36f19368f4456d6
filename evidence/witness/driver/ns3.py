"""ns-3: where it comes from, and the programs that are built on it."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
OUT = TARGET / "witness"

#: The modules of ns-3 that each program is linked with.
MODULES = {
    "bottleneck": ["internet", "network", "core"],
    "mesh": ["lr-wpan", "mobility", "spectrum", "propagation", "antenna", "network", "core"],
}
SOURCES = ("debian", "pypi")


class Missing(Exception):
    """Something that is needed and cannot be had on this machine, with the reason."""


@dataclass
class Ns3:
    """An installation of ns-3."""

    include: Path
    libraries: Path
    #: The beginning of the names of its libraries, such as `ns3-` or `ns3.44-`.
    prefix: str
    version: str

    def build(self, program):
        """Builds a program, unless it is newer than its source. Returns its path."""
        source, binary = HERE / f"{program}.cc", OUT / f"{program}-{self.version}"
        newest = max(path.stat().st_mtime for path in (source, HERE / "coap.h"))
        if binary.exists() and binary.stat().st_mtime > newest:
            return binary
        # The old kind of path is searched for libraries of libraries, too.
        words = [compiler(), "-std=c++20" if self.version >= "3.42" else "-std=c++17", "-O2", "-Wall", "-isystem", self.include,
                 "-o", binary, source, f"-L{self.libraries}", f"-Wl,--disable-new-dtags,-rpath,{self.libraries}",
                 *(f"-l{self.prefix}{module}" for module in MODULES[program])]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{source.name} does not build with ns-3 {self.version}:\n{done.stderr}")
        return binary


def run(binary, options, number):
    """Returns what a program prints for the run with this number, or None if a signal ended it: the lr-wpan of ns-3.37 has a
    fault by which few runs under heavy load end so."""
    words = [binary, *(f"--{name}={value}" for name, value in options.items()), f"--run={number}"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode < 0:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))} fails:\n{done.stderr}")
    return json.loads(done.stdout)


def compiler():
    name = os.environ.get("CXX") or "g++"
    if not shutil.which(name):
        raise Missing(f"there is no C++ compiler {name} (Debian: apt-get install g++; or name one in CXX)")
    return name


def find(source, progress):
    """Returns ns-3 from a source, or from the first of all that has it. Raises Missing with every source's reason."""
    reasons = []
    for name in [source] if source else SOURCES:
        try:
            return {"debian": from_debian, "pypi": from_pypi}[name](progress)
        except Missing as reason:
            reasons.append(f"{name}: {reason}")
    raise Missing("; ".join(reasons))


def from_debian(progress):
    """Debian's packages, installed, or else downloaded and unpacked. This needs no root."""
    folder = OUT / "debian"
    installed = installation(Path("/usr"))
    unpacked = installed or installation(folder / "usr")
    if unpacked:
        return unpacked
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Missing("there is no apt-get")
    progress("downloading Debian's packages of ns-3, some 13 MB")
    packages = missing_packages()
    debs = folder / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    debs.mkdir(parents=True)
    call(["apt-get", "download", *packages], debs)
    for deb in sorted(debs.glob("*.deb")):
        call(["dpkg-deb", "--extract", deb, folder], debs)
    found = installation(folder / "usr")
    if not found:
        raise Missing(f"{', '.join(packages)} have no headers and libraries of ns-3")
    return found


def missing_packages():
    """Returns the packages that apt-get would install for ns-3's headers."""
    words = ["apt-get", "--simulate", "install", "--no-install-recommends", "libns3-dev"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0 and os.geteuid() == 0:
        subprocess.run(["apt-get", "update"], capture_output=True)
        done = subprocess.run(words, capture_output=True, text=True)
    packages = re.findall(r"^Inst (\S+)", done.stdout, re.MULTILINE)
    if not packages:
        raise Missing(f"apt-get finds no libns3-dev (perhaps apt-get update helps): {last_line(done.stderr)}")
    return packages


def from_pypi(progress):
    """The wheel of PyPI, unpacked. It has headers and libraries for C++ beside its Python."""
    folder = OUT / "pypi"
    unpacked = installation(folder / "ns3")
    if unpacked:
        return unpacked
    progress("downloading PyPI's wheel of ns-3, some 70 MB")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    call([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "ns3"], folder)
    wheel = next(folder.glob("*.whl"), None)
    if not wheel:
        raise Missing("pip has downloaded nothing")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    found = installation(folder / "ns3")
    if not found:
        raise Missing(f"{wheel.name} has no headers and libraries")
    return found


def installation(prefix):
    """Returns the ns-3 below a prefix such as /usr, if it is there."""
    core = next((file for pattern in ("lib/*/libns3*core.so", "lib64/libns3*core.so", "lib/libns3*core.so")
                 for file in sorted(prefix.glob(pattern))), None)
    include = prefix / "include"
    description = core and core.parent / "pkgconfig" / "ns3-core.pc"
    if not core or not (include / "ns3" / "core-module.h").exists() or not description.exists():
        return None
    version = re.search(r"^Version: *(\S+)", description.read_text(), re.MULTILINE)
    return Ns3(include, core.parent, core.name.removeprefix("lib").removesuffix("core.so"), version[1] if version else "unknown")


def call(words, folder):
    """Runs a command that fetches or unpacks something. Raises Missing if it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{Path(words[0]).name} fails: {last_line(done.stderr)}")


def last_line(text):
    return (text.strip().splitlines() or ["no reason is given"])[-1]
