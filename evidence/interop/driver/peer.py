"""The stacks: their servers and clients, how they are built, and the cases that they do not offer."""

import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from .process import Process

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()

OURS = "coapace"
#: The other stacks: every folder that has limits. Its name is the stack's.
PEERS = sorted({file.parent.name for file in HERE.glob("*/limits")} - {OURS})
#: Exit code of a build script whose stack cannot be had on this machine; automake uses the same code for skipped tests.
UNAVAILABLE = 77
#: Seconds for a build that has to fetch everything, and for a server to listen.
BUILD_LIMIT, START_LIMIT = 240, 30


class Missing(Exception):
    """A stack that cannot be had on this machine, with the reason."""


@dataclass
class Limit:
    """The reason why a case, or several (`coaps *`), do not pass with a stack as a server or client: it is "not
    offered", or the "peer" or "ours" is wrong."""

    role: str
    case: str
    word: str
    reason: str


@dataclass
class Peer:
    """A stack with a server and a client, and its limits."""

    name: str
    version: str
    folder: Path
    limits: list

    def limit(self, role, case):
        """Returns the limit for a case, if there is one."""
        return next((limit for limit in self.limits if limit.role == role and fnmatchcase(case, limit.case)), None)

    def serve(self, *words):
        """Starts its server at a free loopback port, with `words` as arguments."""
        port = free_port()
        return Server([self.folder / "server", str(port), *words], port)

    def client(self):
        return str(self.folder / "client")


class Server(Process):
    """A server: CoAP over UDP and TCP at one port, over DTLS and TLS at the next, like 5683 and 5684; over WebSockets
    at 3000 above, like aiocoap."""

    def __init__(self, words, port):
        self.ports = {"coap": port, "coap+tcp": port, "coaps": port + 1, "coaps+tcp": port + 1, "coap+ws": port + 3000}
        super().__init__(words)

    def __enter__(self):
        try:
            self.line(START_LIMIT)
        except BaseException:
            self.__exit__()
            raise
        return self


def free_port():
    """Returns a port that is free for UDP and TCP, and so are the others of a `Server`."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first, ExitStack() as others:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                for above, kind in ((0, socket.SOCK_STREAM), (1, socket.SOCK_DGRAM), (1, socket.SOCK_STREAM),
                                    (3000, socket.SOCK_STREAM)):
                    others.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port + above))
            except (OSError, OverflowError):
                continue
            return port


def certify():
    """Makes the certificates of this run, in the folder that CERTIFICATES names to every server and client."""
    out = TARGET / "interop" / "certificates"
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run([HERE / "certify", out], check=True)
    os.environ["CERTIFICATES"] = str(out)


def build(name):
    """Builds a stack into the folder interop of the target directory. Raises Missing with the reason if it cannot be
    had."""
    out = TARGET / "interop" / name
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile("w+") as log:
        with Process(builder(name, out), stdout=log, stderr=log) as process:
            status = process.wait(BUILD_LIMIT)
        log.seek(0)
        words = log.read().strip()
    if status == UNAVAILABLE:
        raise Missing(words.splitlines()[-1] if words else "its script does not say why")
    if status != 0:
        raise RuntimeError(f"{name} does not build:\n{words}")
    return Peer(name, (out / "version").read_text().strip(), out, limits(HERE / name / "limits"))


def builder(name, out):
    """Returns the stack's own build script, or else that of evidence/peers, which builds the programs of this folder."""
    own = HERE / name / "build"
    return [own, out] if own.exists() else [ROOT / "evidence" / "peers" / name / "build", out, HERE / name]


def limits(file):
    """Reads lines of `server|client CASE, …: not offered|peer|ours: REASON`."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        if not line.strip() or line.startswith("#"):
            continue
        place, word, reason = (part.strip() for part in line.split(":", 2))
        role, cases = place.split(None, 1)
        if role not in ("server", "client") or word not in ("not offered", "peer", "ours"):
            raise ValueError(f"{file}: {line!r}")
        found += [Limit(role, case.strip(), word, reason) for case in cases.split(",")]
    return found
