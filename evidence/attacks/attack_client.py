"""The client with bad servers: none, a silent one, one that refuses, and one whose text controls a terminal.

`get -o FILE` leaves FILE unchanged, `load` and a second interruption end in time, no control characters are printed on a
terminal, and invalid input files are refused at once.
"""

import os
import pathlib
import pty
import select
import signal
import socket
import subprocess
import sys
import time

from loopback import PUT, Bounds, Client, Server, directory, path

bounds, command = Bounds(), sys.argv[1]
place = directory()
kept = pathlib.Path(place) / "kept"
silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 0))
quiet_uri = f"coap://127.0.0.1:{silent.getsockname()[1]}/x"
nobody = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
nobody.bind(("127.0.0.1", 0))
nobody_uri = f"coap://127.0.0.1:{nobody.getsockname()[1]}/x"
nobody.close()
server = Server(command, "--demo")
uri = f"coap://127.0.0.1:{server.uris['coap']}"


def run(*arguments, limit=30):
    """Runs a command. Returns exit code and seconds."""
    begun = time.monotonic()
    try:
        done = subprocess.run([command, *arguments], capture_output=True, timeout=limit, check=False)
        return done.returncode, time.monotonic() - begun
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - begun


for name, arguments in (
    ("nobody listens", [nobody_uri, "--fail-fast"]),
    ("a server is silent", [quiet_uri, "-B", "1"]),
    ("there is no such resource", [f"{uri}/nothing"]),
):
    kept.write_text("as it was", encoding="ascii")
    run("get", *arguments, "-o", str(kept))
    text = kept.read_text(encoding="ascii")
    bounds.check(text == "as it was", f"get -o, {name}: the file has {len(text)} bytes (9, as before)")
kept.write_text("as it was", encoding="ascii")
getting = subprocess.Popen([command, "get", f"{uri}/large?bytes=1048576", "-b", "16", "-o", str(kept)])
time.sleep(0.3)
getting.send_signal(signal.SIGINT)
getting.wait(10)
text = kept.read_bytes()
bounds.check(text == b"as it was", f"get -o, interrupted: the file has {len(text)} bytes (9, as before)")
beside = sorted(set(pathlib.Path(place).iterdir()) - {kept})
bounds.check(beside == [kept.with_name("kept.part")], f"get -o leaves what has arrived in kept.part, and nothing else: {len(beside)} files (1)")

code, seconds = run("load", quiet_uri, "--duration", "2", limit=100)
bounds.check(code == 1 and seconds <= 10, f"load --duration 2, a silent server: {seconds:.1f} s (at most 10)")

serving = Server(command, "--demo")
slow = Client(serving.address())
slow.socket.sendto(bytes.fromhex("40011234") + b"\xb7delayed\x44s=30", serving.address())
time.sleep(0.5)
begun = time.monotonic()
serving.process.send_signal(signal.SIGINT)
time.sleep(0.3)
serving.process.send_signal(signal.SIGINT)
try:
    serving.process.wait(20)
except subprocess.TimeoutExpired:
    pass
seconds = time.monotonic() - begun
bounds.check(seconds <= 5, f"serve, interrupted twice while a handler waits: {seconds:.1f} s (at most 5)")


def on_terminal(*arguments):
    """Returns the output of a call on a terminal."""
    inside, outside = pty.openpty()
    process = subprocess.Popen([command, *arguments], stdin=subprocess.DEVNULL, stdout=outside, stderr=outside)
    os.close(outside)
    printed, end = b"", time.monotonic() + 10
    while time.monotonic() < end and select.select([inside], [], [], max(0, end - time.monotonic()))[0]:
        try:
            printed += os.read(inside, 65_536)
        except OSError:
            break
    process.kill()
    process.wait()
    os.close(inside)
    return printed


def obeyed(printed):
    """Counts the bytes of control characters, including C1 in UTF-8, except line breaks and tabs."""
    text = printed.decode("utf-8", "replace")
    return sum((ord(c) < 32 and c not in "\r\n\t") or 127 <= ord(c) < 160 for c in text)


writer = Client(server.address())
evil = "\x1b]0;owned\x07\x9b2J".encode()
writer.ask(PUT, path("store/text"), evil)
writer.ask(PUT, [(12, b"\x3c")] + path("store/cbor"), bytes([0x60 + len(evil)]) + evil)
for name in ("text", "cbor"):
    count = obeyed(on_terminal("get", f"{uri}/store/{name}"))
    bounds.check(count == 0, f"get of {name} on a terminal: {count} control characters (0)")
piped = subprocess.run([command, "get", f"{uri}/store/text"], capture_output=True, check=False).stdout
bounds.check(piped == evil, "get into a pipe: the bytes as they are")

pipe = pathlib.Path(place) / "pipe.csc"
os.mkfifo(pipe)
many = pathlib.Path(place) / "many.csc"
attributes = " ".join(f"a{n}='1'" for n in range(300_000))
many.write_text(f"<simconf><simulation {attributes}></simulation></simconf>", encoding="ascii")
for name, file in (("a pipe", pipe), ("300,000 attributes", many)):
    code, seconds = run(
        "run", "mesh-grid", "--set", "network.mesh.topology.kind=file", "--set", f"network.mesh.topology.file={file}",
        "--seeds", "1", limit=60,
    )
    bounds.check(code in (1, 2) and seconds <= 10, f"{name} as topology: refused after {seconds:.1f} s (at most 10)")
bounds.exit()
