"""Processes that have clients: how they end, and what their children inherit."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "ending",
    ["", "sys.exit(0)", "raise KeyboardInterrupt", "os.kill(os.getpid(), 15)"],
    ids=["fall off", "exit", "interrupt", "signal"],
)
def test_the_interpreter_ends_with_requests_under_way(ending: str) -> None:
    program = f"""
import asyncio, os, sys
import coapace

server = client = None

async def main():
    global server, client
    server = await coapace.Server("127.0.0.1:0").__aenter__()
    server.resource("/x", observable=True)(lambda request: "x")
    client = coapace.Client("default:ack_timeout=10ms")
    observation = client.observe(server.uri + "/x")
    await observation.__anext__()
    waiting = [asyncio.ensure_future(client.get(f"coap://127.0.0.{{n}}:9/x")) for n in range(2, 50)]
    await asyncio.sleep(0.05)
    print("ready", flush=True)
    {ending or "return"}

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ready\n", done.stderr
    for word in ("panic", "Fatal", "terminate"):
        assert word not in done.stderr
    assert done.returncode in (0, 1, 130, -2, -15), done.stderr


def test_a_child_process_makes_clients_of_its_own() -> None:
    program = """
import asyncio, os
import coapace

async def ask(client, uri):
    return (await client.get(uri, timeout=20)).text

async def main():
    async with coapace.Server("127.0.0.1:0") as server:
        server.resource("/x")(lambda request: "x")
        old = coapace.Client()
        assert await ask(old, server.uri + "/x") == "x"
        child = os.fork()
        if child == 0:
            asyncio.events._set_running_loop(None)
            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(ask(coapace.Client(), server.uri + "/x"))
                try:
                    loop.run_until_complete(ask(old, server.uri + "/x"))
                except RuntimeError as error:
                    print(error, flush=True)
                    os._exit(0)
            finally:
                os._exit(1)
        _, status = await asyncio.get_running_loop().run_in_executor(None, os.waitpid, child, 0)
        assert await ask(old, server.uri + "/x") == "x", "the parent goes on"
        print(status)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("\n0\n") and "another" in done.stdout, (done.stdout, done.stderr)
