"""Installs the mechanism that COAPACE_EVERYWHERE names in every context of aiocoap, in this process and those that it starts.

aiocoap's tests know nothing of it. They set contexts up and take them down in many ways, which all pass one of two constructors.
"""

import os

if mechanism := os.environ.get("COAPACE_EVERYWHERE"):
    import functools

    import aiocoap
    import coapace.aiocoap

    def controlled(create):
        """Return the constructor of a context with the mechanism in it."""

        @functools.wraps(create)
        async def made(cls, *arguments, **named):
            context = await create(cls, *arguments, **named)
            try:
                coapace.aiocoap.install(context, mechanism)
            except ValueError as error:
                if "no transport over datagrams" not in str(error):
                    raise
            else:
                with open(os.environ["COAPACE_CONTEXTS"], "a") as contexts:
                    contexts.write("1")
            return context

        return classmethod(made)

    for name in ("create_client_context", "create_server_context"):
        setattr(aiocoap.Context, name, controlled(getattr(aiocoap.Context, name).__func__))
