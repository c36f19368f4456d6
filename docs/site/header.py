"""Makes a page of a C header: what its comments say of each type, constant and function, in the order of the header."""

import re

ITEM = re.compile(r"^/\*(.*?)\*/[ \t]*\n(.*?)(?=^/\*|\Z)", re.M | re.S)
NAME = re.compile(r"(?:^|\n)(?:#define (\w+)|((?:struct|enum) \w+) \{|[\w *]*?\b(coapace_\w+)\()")


def page(title, intro, header):
    """Returns the Markdown of a page."""
    # What chooses mechanisms and languages is for the compiler.
    header = re.sub(r"^#(?:if|else|elif|endif|include|ifndef|ifdef).*?(?<!\\)\n", "", header, flags=re.M)
    (head, _), *items = ITEM.findall(header)
    parts = [f"# {title}\n", intro, prose(head)]
    described = {}
    for comment, code in items:
        # A function without a comment is described by an earlier one.
        first, *others = re.split(r"\n\n(?=[a-z])|(?<=\);)\n(?=[a-z])", declared(code))
        whole = None
        for place, piece in enumerate([first, *others]):
            found = NAME.search(piece)
            name = next(filter(None, found.groups())) if found else None
            text = prose(comment) if place == 0 else ""
            if not name:
                parts.append(text)
                continue
            if place == 0:
                whole = name
                described |= {word: name for word in re.findall(r"\w+", comment)}
            else:
                by = described.get(name, whole)
                text = f"See [`{by}`](#{by.replace(' ', '-')}).\n"
            parts += [f"## `{name}`\n", text, f"```c\n{piece}\n```\n"]
    return "\n".join(parts)


def prose(comment):
    """Returns a comment as Markdown. Its examples are indented."""
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip("\n").splitlines()]
    text = "\n".join(lines).strip()
    text = re.sub(r"\b(coapace_\w+|COAPACE_\w+)\b(?!\.[ch]\b)", r"`\1`", text)
    found = []
    for paragraph in text.split("\n\n"):
        code = all(line.startswith("  ") for line in paragraph.splitlines())
        if code and not re.match(r"\s*(-|\d\.) ", paragraph):
            found.append("\n".join("  " + line.replace("`", "") for line in paragraph.splitlines()))
        else:
            found.append("\n".join(re.sub(r"^ {2,3}(?=-|\d)", "", line).replace("     ", "    ") for line in paragraph.splitlines()))
    return "\n\n".join(found) + "\n"


def declared(code):
    """Returns declarations; the bodies of inline functions are left out."""
    code = re.sub(r"\n\{\n.*?^\}$", ";", code, flags=re.M | re.S)
    code = re.sub(r'extern "C" \{\n|^\}$', "", code, flags=re.M)
    return re.sub(r"\n{2,}", "\n\n", code).strip()
