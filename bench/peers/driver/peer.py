"""The stacks: where their servers and clients are, and how they are built."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BUILD = HERE / "build"

PATH = "bench"
PAYLOAD = "0123456789" * 6

#: Every folder with a script `build` that leaves `server`, `client` and `version`.
STACKS = sorted(script.parent.name for script in HERE.glob("*/build") if script.is_file())
FLOOR = "bare"
#: How a script says that its stack cannot be had here, as automake does.
UNAVAILABLE = 77


class Missing(Exception):
    """A stack that cannot be measured here, and why."""


@dataclass
class Peer:
    """A stack. A command is a list of words in which {address}, {port}, {path} and {payload} are filled in."""

    name: str
    version: str
    server: list
    client: list | None

    @staticmethod
    def fill(command, port):
        """The words of a command for a server at a port of 127.0.0.1."""
        values = {"address": "127.0.0.1", "port": port, "path": PATH, "payload": PAYLOAD}
        for name, value in values.items():
            command = [word.replace(f"{{{name}}}", str(value)) for word in command]
        return command


def build_generator():
    """Builds the load generator and returns its path."""
    target = BUILD / "generator"
    manifest = HERE / "generator" / "Cargo.toml"
    words = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", target]
    subprocess.run(words, check=True)
    return target / "release" / "peer-load"


def floor(generator):
    """The bare responder and the bare client."""
    words = ["--server", "{address}:{port}", "--path", "{path}", "--payload", "{payload}"]
    version = "recvfrom and sendto, no state"
    return Peer(FLOOR, version, [str(generator), "respond", *words], [str(generator), "get", *words])


def build(name):
    """Builds a stack from its registry."""
    out = BUILD / name
    out.mkdir(parents=True, exist_ok=True)
    log = out / "build.log"
    with log.open("w") as file:
        status = subprocess.run([HERE / name / "build", out], stdout=file, stderr=file, stdin=subprocess.DEVNULL).returncode
    if status == UNAVAILABLE:
        raise Missing(log.read_text().strip().splitlines()[-1])
    if status != 0:
        raise Missing(f"does not build: see {os.path.relpath(log)}")
    words = ["{address}", "{port}", "{path}", "{payload}"]
    version = (out / "version").read_text().strip()
    return Peer(name, version, [str(out / "server"), *words], [str(out / "client"), *words])
