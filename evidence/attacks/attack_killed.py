"""Killed writers: a server is killed 25 times while it writes; no file is torn, and the next start removes temporary files.

Then modes: a file that only its owner may read keeps its mode when it is replaced, and a read-only file is not replaced.
"""

import pathlib
import random
import sys
import threading
import time

from loopback import GET, PUT, Bounds, Client, Server, connected, directory, over_tcp, path

KILLS, WRITERS, LENGTH = 25, 4, 60_000

bounds, command = Bounds(), sys.argv[1]
place = directory()
top = pathlib.Path(place)


def write(server):
    """Writes over TCP, as fast as it is answered, until the server is gone."""
    try:
        connection = connected(server.address("coap+tcp"))
        while True:
            letter = random.choice(b"abcdefgh")
            connection.sendall(over_tcp(PUT, b"", path(f"file{letter % 4}"), bytes([letter]) * LENGTH))
            connection.recv(4_096)
    except OSError:
        pass


def start():
    return Server(command, "--directory", place, "--writable", "--max-writes", "100000/100000", "--tcp", "127.0.0.1:0")


left = 0
for _ in range(KILLS):
    server = start()
    writers = [threading.Thread(target=write, args=(server,), daemon=True) for _ in range(WRITERS)]
    for writer in writers:
        writer.start()
    time.sleep(random.uniform(0.1, 0.3))
    server.process.kill()
    server.process.wait()
    for writer in writers:
        writer.join(10)
    left = max(left, sum(name.name.startswith(".") for name in top.iterdir()))
files = [entry.read_bytes() for entry in top.iterdir() if not entry.name.startswith(".")]
torn = sum(len(set(content)) != 1 or len(content) != LENGTH for content in files)
bounds.check(files and torn == 0, f"{KILLS} kills: {torn} of {len(files)} files torn (0)")
server = start()
after = sum(name.name.startswith(".") for name in top.iterdir())
bounds.check(after == 0, f"files in the making: up to {left} after a kill, {after} after the next start (0)")
client = Client(server.address())
for name, mode in (("secret", 0o600), ("fixed", 0o444)):
    (top / name).write_text("before", encoding="ascii")
    (top / name).chmod(mode)
client.ask(PUT, path("secret"), b"after")
mode = (top / "secret").stat().st_mode & 0o7777
bounds.check(mode == 0o600, f"a file of mode 600 has mode {mode:o} when it is replaced (600)")
answer = client.ask(PUT, path("fixed"), b"after")
text = (top / "fixed").read_text(encoding="ascii")
code = f"{answer.code >> 5}.{answer.code & 31:02}" if answer else "no answer"
bounds.check(text == "before", f"a file of mode 444 is answered {code} and says {text!r} ('before')")
assert client.ask(GET, path("secret")).payload == b"after"
bounds.exit()
