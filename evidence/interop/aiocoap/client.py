"""client METHOD URI [non] [block=BYTES] [observe=N]: one request with aiocoap."""

import asyncio
import os
import sys
from urllib.parse import urlsplit

import aiocoap
from aiocoap.numbers.codes import Code


def show(response):
    print(f"{response.code.class_}.{response.code & 31:02} {response.payload.hex()}", flush=True)


async def main(method, uri, *flags):
    flags = dict(flag.partition("=")[::2] for flag in flags)
    context = await aiocoap.Context.create_client_context()
    root = os.path.join(os.environ["CERTIFICATES"], "ca.pem")
    context.client_credentials.load_from_dict({f"coaps+tcp://{urlsplit(uri).netloc}/*": {"tlscert": {"certfile": root}}})
    request = aiocoap.Message(code=getattr(Code, method), uri=uri, payload=sys.stdin.buffer.read())
    if request.payload:
        request.opt.content_format = 0
    if "non" in flags:
        request.transport_tuning = aiocoap.Unreliable
    if "block" in flags:
        exponent = int(flags["block"]).bit_length() - 5
        await context.find_remote_and_interface(request)  # sets an address that block sizes can be stored for
        request.remote.maximum_block_size_exp = exponent
        if method == "GET":
            request.opt.block2 = (0, False, exponent)
    if "observe" in flags:
        request.opt.observe = 0
        asked = context.request(request, handle_blockwise=False)
        show(await asked.response)
        left = int(flags["observe"]) - 1
        async for notification in asked.observation:
            show(notification)
            left -= 1
            if left == 0:
                break
        asked.observation.cancel()
        await asyncio.sleep(2.5)  # the client acknowledges the next notification, and answers the one after it with a Reset
    else:
        show(await context.request(request).response)
    await context.shutdown()


asyncio.run(main(*sys.argv[1:]))
