"""What aiocoap's tests take from their own module `fixtures`: tests that watch the log, and what is left behind."""

import asyncio
import functools
import gc
import inspect
import logging
import unittest
import warnings
import weakref

#: Seconds for datagrams over loopback to arrive, and for connections to close.
CLEANUPTIME = 0.05

IsolatedAsyncioTestCase = unittest.IsolatedAsyncioTestCase


def is_test_successful(testcase):
    return testcase._outcome.success


def precise_warnings(expected):
    """Return a decorator: a method has to log these warnings and no others. `...` at the end of one stands for anything."""

    def begun(self):
        return len(self.handler.list)

    def ended(self, before):
        found = [
            record.getMessage()
            for record in self.handler.list[before:]
            if record.levelno >= logging.WARNING and not _of_the_machine(record)
        ]
        same = len(found) == len(expected) and all(map(_matches, expected, found))
        if not same:
            self.assertEqual(found, expected)

    def decorate(method):
        @functools.wraps(method)
        async def later(self, *arguments):
            before = begun(self)
            result = await method(self, *arguments)
            ended(self, before)
            return result

        @functools.wraps(method)
        def at_once(self, *arguments):
            before = begun(self)
            result = method(self, *arguments)
            ended(self, before)
            return result

        return later if inspect.iscoroutinefunction(method) else at_once

    return decorate


no_warnings = precise_warnings([])


def _matches(expected, found):
    return found.startswith(expected[:-3]) if expected.endswith("...") else found == expected


def _of_the_machine(record):
    """Return whether a warning tells of a slow machine, or of the interpreter, and not of aiocoap."""
    return record.original.startswith("Executing %s took") or "There is no current event loop" in record.getMessage()


class Kept(logging.Handler):
    """Keeps records without what they refer to, so that they keep nothing alive."""

    def __init__(self):
        super().__init__()
        self.list = []

    def __iter__(self):
        return iter(self.list)

    def emit(self, record):
        if not hasattr(record, "original"):
            record.original, record.msg = str(record.msg), record.getMessage()
        record.args = record.exc_info = None
        vars(record).pop("websocket", None)
        self.list.append(record)


class WithLogMonitoring(IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        gc.collect()  # closes the sockets of a test that failed in its setup
        self.handler = Kept()
        logging.root.setLevel(0)
        logging.root.addHandler(self.handler)
        logging.captureWarnings(True)
        warnings.simplefilter("always")
        await super().asyncSetUp()

    async def asyncTearDown(self):
        await super().asyncTearDown()
        logging.root.removeHandler(self.handler)
        gc.collect()  # what that warns of belongs to this test

    def assertWarned(self, message):
        """Take one warning of this text from the log."""
        found = [one for one in self.handler.list if one.levelno == logging.WARNING and one.msg == message]
        self.assertTrue(found, f"nothing warned: {message}")
        self.handler.list.remove(found[0])


class Destructing(WithLogMonitoring):
    async def _del_to_be_sure(self, attribute):
        """Delete an attribute, and fail if the object lives on."""
        if isinstance(attribute, str):
            label, alive = attribute, weakref.ref(getattr(self, attribute))
            delattr(self, attribute)
        else:
            label, alive = attribute["label"], weakref.ref(attribute["get"](self))
            attribute["del"](self)
        if not is_test_successful(self):
            return  # the traceback keeps it alive
        await asyncio.sleep(CLEANUPTIME)
        gc.collect()
        self.assertIsNone(alive(), f"{label} was not collected")
