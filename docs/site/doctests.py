"""An extension of griffe, which reads docstrings for mkdocstrings: examples (>>>) are shown as code."""

import re

from griffe import Extension

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.M | re.S)


class Doctests(Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring and ">>> " in obj.docstring.value:
            obj.docstring.value = EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", obj.docstring.value)

    def on_package(self, *, pkg, **_):
        self.on_object(obj=pkg)
