"""client ADDRESS PORT PATH PAYLOAD: for every number N on standard input, makes N GETs one after the other, and prints
the number answered with the payload."""

import asyncio
import sys

import aiocoap


async def main(address, port, path, payload):
    context = await aiocoap.Context.create_client_context()
    uri, payload = f"coap://{address}:{port}/{path}", payload.encode()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        answered = 0
        for _ in range(int(line)):
            try:
                response = await context.request(aiocoap.Message(code=aiocoap.GET, uri=uri)).response
            except aiocoap.error.Error:
                continue
            answered += response.code == aiocoap.CONTENT and response.payload == payload
        print(answered, flush=True)
    await context.shutdown()


asyncio.run(main(*sys.argv[1:]))
