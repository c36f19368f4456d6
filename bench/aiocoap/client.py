"""client PORT REQUESTS [MECHANISM]: makes GETs one after the other, and prints what they cost as JSON."""

import asyncio
import json
import statistics
import sys
import time

import aiocoap


async def main(port, requests, mechanism=None):
    context = await aiocoap.Context.create_client_context(transports=["udp6"])
    if mechanism:
        import coapace.aiocoap

        coapace.aiocoap.install(context, mechanism)
    transport = context.request_interfaces[0].token_interface.message_interface
    send, sent = transport.send, []
    transport.send = lambda message: (sent.append(message.mid), send(message))
    seconds, answered = [], 0
    for _ in range(int(requests)):
        begun = time.monotonic()
        try:
            await context.request(aiocoap.Message(code=aiocoap.GET, uri=f"coap://127.0.0.1:{port}/")).response
            answered += 1
        except aiocoap.error.NetworkError:
            pass
        seconds.append(time.monotonic() - begun)
    print(json.dumps({
        "seconds": sum(seconds), "median": statistics.median(seconds), "slowest": max(seconds),
        "answered": answered, "sent": len(sent), "copies": len(sent) - len(set(sent)),
    }))
    await context.shutdown()


asyncio.run(main(*sys.argv[1:]))
