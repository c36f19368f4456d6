"""server ADDRESS PORT PATH PAYLOAD: one resource."""

import asyncio
import sys

import aiocoap
from aiocoap import resource


class Answer(resource.Resource):
    def __init__(self, payload):
        super().__init__()
        self.payload = payload

    async def render_get(self, request):
        return aiocoap.Message(payload=self.payload)


async def main(address, port, path, payload):
    site = resource.Site()
    site.add_resource(path.split("/"), Answer(payload.encode()))
    await aiocoap.Context.create_server_context(site, bind=(address, int(port)))
    await asyncio.get_running_loop().create_future()


asyncio.run(main(*sys.argv[1:]))
