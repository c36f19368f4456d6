"""server PORT IDENTITY KEY: the resources of evidence/interop with aiocoap, over UDP, TCP, TLS and WebSockets."""

import asyncio
import os
import ssl
import sys
import time

import aiocoap
from aiocoap import CHANGED, CONTENT, CREATED, DELETED, Message, resource
from aiocoap.error import NotFound


class Hello(resource.Resource):
    async def render_get(self, request):
        return Message(payload=b"Hello", content_format=0)


class Echo(resource.Resource):
    async def render_post(self, request):
        return Message(code=CHANGED, payload=request.payload)

    render_put = render_patch = render_ipatch = render_post

    async def render_fetch(self, request):
        return Message(code=CONTENT, payload=request.payload)


class Delayed(resource.Resource):
    async def render_get(self, request):
        seconds = argument(request, "s", 5)
        await asyncio.sleep(seconds)
        return Message(payload=f"{seconds} s later".encode())


class Large(resource.Resource):
    async def render_get(self, request):
        size = argument(request, "bytes", 8192)
        return Message(payload="".join(f"{offset:<63}\n" for offset in range(0, size, 64)).encode()[:size])


class Counter(resource.Resource):
    count = 0

    async def render_get(self, request):
        return Message(payload=str(self.count).encode())

    async def render_post(self, request):
        self.count += 1
        return Message(code=CHANGED, payload=str(self.count).encode())


class Clock(resource.ObservableResource):
    async def tick(self):
        while True:
            await asyncio.sleep(1)
            self.updated_state()

    async def render_get(self, request):
        return Message(payload=str(int(time.time())).encode())


class Store(resource.Resource, resource.PathCapable):
    def __init__(self):
        super().__init__()
        self.values = {}

    async def render_get(self, request):
        if request.opt.uri_path not in self.values:
            raise NotFound()
        return Message(payload=self.values[request.opt.uri_path])

    async def render_put(self, request):
        known = request.opt.uri_path in self.values
        self.values[request.opt.uri_path] = request.payload
        return Message(code=CHANGED if known else CREATED)

    async def render_delete(self, request):
        self.values.pop(request.opt.uri_path, None)
        return Message(code=DELETED)


def argument(request, name, otherwise):
    arguments = dict(text.partition("=")[::2] for text in request.opt.uri_query)
    return int(arguments.get(name, otherwise))


async def main(port, identity, key):
    site, clock = resource.Site(), Clock()
    site.add_resource([".well-known", "core"], resource.WKCResource(site.get_resources_as_linkheader))
    for path, served in {"hello": Hello(), "echo": Echo(), "delayed": Delayed(), "large": Large(), "counter": Counter(),
                         "clock": clock, "store": Store()}.items():
        site.add_resource([path], served)
    certified = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certified.load_cert_chain(*(os.path.join(os.environ["CERTIFICATES"], name) for name in ("server.pem", "server.key")))
    certified.set_alpn_protocols(["coap"])
    await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", int(port)), _ssl_context=certified)
    print("ready", flush=True)
    await clock.tick()


asyncio.run(main(*sys.argv[1:]))
