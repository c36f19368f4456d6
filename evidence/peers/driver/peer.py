"""The stacks: the commands of their servers and clients, and how they are built."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BUILD = HERE / "build"

PATH = "bench"
PAYLOAD = "0123456789" * 6

#: The names of the stacks: every folder whose script `build` makes `server`, `client` and `version`.
STACKS = sorted(script.parent.name for script in HERE.glob("*/build") if script.is_file())
FLOOR = "bare"
#: Exit code of a build script whose stack cannot be had on this machine; automake uses the same code for skipped tests.
UNAVAILABLE = 77


class Missing(Exception):
    """A stack that cannot be measured on this machine, with the reason."""


@dataclass
class Peer:
    """A stack. A command is a list of words in which {address}, {port}, {path} and {payload} are filled in."""

    name: str
    version: str
    server: list
    client: list | None

    @staticmethod
    def fill(command, port):
        """Returns the words of a command for a server at a port of 127.0.0.1."""
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
    """Returns the bare responder and the bare client, which keep no state."""
    words = ["--server", "{address}:{port}", "--path", "{path}", "--payload", "{payload}"]
    version = "recvfrom and sendto, no state"
    return Peer(FLOOR, version, [str(generator), "respond", *words], [str(generator), "get", *words])


def build(name):
    """Builds a stack from its package registry."""
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
