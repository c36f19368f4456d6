"""A hook of MkDocs. Pages link to files of the repository by relative paths, which work on GitHub. On the site, a link that leaves
docs/ becomes the address of that file on GitHub, and a link to the playground leads to its copy in the site. No page asks another host
for anything."""

import os
import re
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

sys.path.insert(0, str(Path(__file__).parent))
import gallery
import header

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BLOB = "https://github.com/coapace/coapace/blob/main/"
#: The sources of the playground, to which pages link.
PLAYGROUND = "crates/web/page"
SHIM = "assets/javascripts/iframe-worker.js"
LINK = re.compile(r"(\]\()([^)#\s]+)([^)\s]*\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.M | re.S)
#: Pages made of sources: docstrings by mkdocstrings, headers of C by header.py.
PYTHON = """# Python reference

Every public name of the package `coapace`, from its docstrings. [The laboratory](python.md) and [clients and servers](python-endpoint.md) show how they go together.

::: coapace

::: coapace.aiocoap
    options: { show_root_heading: true, show_root_full_path: true }
"""
HEADERS = {
    "c-source.md": ("C source: coapace.h", "c/coapace.h", "The header of the [C source](../c/README.md), one file of C99 without Rust."),
    "c-library.md": ("C library: coapace.h", "crates/ffi/include/coapace.h", "The header of the [C library](../crates/ffi/README.md), which is made of the Rust crates."),
}
UNBUILT = "<!doctype html><title>Playground</title><p>This copy of the site was built without the playground.\n"


def on_files(files, config):
    """Adds the playground, the references of Python and C, and what search needs in pages that are opened as files."""
    files.append(File.generated(config, "python-api.md", content=PYTHON))
    for name, (title, path, intro) in HEADERS.items():
        files.append(File.generated(config, name, content=header.page(title, intro + "\n", (ROOT / path).read_text())))
    files.append(File.generated(config, SHIM, abs_src_path=str(ROOT / "docs/site/iframe-worker.js")))
    playground = TARGET / "playground"
    for path in sorted(playground.rglob("*")):
        if path.is_file():
            files.append(File.generated(config, f"playground/{path.relative_to(playground).as_posix()}", abs_src_path=str(path)))
    if not (playground / "index.html").exists():
        files.append(File.generated(config, "playground/index.html", content=UNBUILT))
    return files


def on_page_markdown(markdown, page, config, files):
    """Rewrites the links of a page that leave docs/."""
    folder = PurePosixPath("docs", page.file.src_uri).parent
    if folder.name in {"decisions", "reproductions"}:
        # A search finds guides before histories and tables.
        page.meta["search"] = {"boost": 0.4}

    def rewritten(link):
        target = link[2]
        path = normpath(str(folder / target))
        if ":" in target or path == "docs" or path.startswith("docs/") and not (ROOT / path).is_dir():
            return link[0]
        if path == PLAYGROUND:
            return f"{link[1]}{'../' * (len(folder.parts) - 1)}playground/index.html{link[3]}"
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri} links to {target}, which does not exist")
        return link[1] + BLOB + path + link[3]

    if folder.name == "reproductions":
        markdown = gallery.drawn(PurePosixPath(page.file.src_uri).stem, markdown, "../")
    # A link in code is text.
    return "".join(part if at % 2 else LINK.sub(rewritten, part) for at, part in enumerate(CODE.split(markdown)))


def local(output, url):
    """Returns a page that loads the script for search from the site. The theme would load it from another host."""
    output = output.replace("https://unpkg.com/iframe-worker/shim", get_relative_url(SHIM, url))
    output = output.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')
    foreign = re.search(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(https?://[^"' >]+)""", output)
    if foreign:
        raise PluginError(f"{url} would load {foreign[1]}")
    return output


def on_post_page(output, page, config):
    return local(output, page.url)


def on_post_template(output_content, template_name, config):
    return local(output_content, template_name) if template_name.endswith(".html") else output_content
