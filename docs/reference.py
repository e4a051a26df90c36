"""The reference, a page per module, made of signatures and docstrings; and what else the site needs
beside the pages (`make docs`; mkdocs.yml names this file as a hook).
"""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: modules whose names are public, and what they are about
MODULES = {
    "weft": "Tensors, functions on them, gradients, programs",
    "weft.nn": "Modules",
    "weft.nn.functional": "Functions that modules are made of",
    "weft.nn.init": "First values of parameters",
    "weft.nn.utils.rnn": "Sequences of different lengths",
    "weft.optim": "Optimizers and schedules",
    "weft.data": "Datasets and loaders",
    "weft.errors": "Errors and warnings",
}
#: pages that are about how it works inside, behind the reference
INSIDE = {
    "numerics.md": "Numerics", "errors.md": "Errors", "benchmarks.md": "Benchmarks",
    "ir.md": "The IR and its grammar", "layout.md": "Layout", "adding_an_op.md": "Adding an op",
    "adding_a_pass.md": "Adding a pass",
}  # fmt: skip


def public(name):
    """The public names of a module and what they stand for, modules and plain values left out."""
    module = importlib.import_module(name)
    for key, value in sorted(vars(module).items(), key=lambda pair: pair[0].lower()):
        home = getattr(value, "__module__", None) or ""
        if key.startswith("_") or inspect.ismodule(value) or not callable(value):
            continue
        if home == name or (hasattr(module, "__path__") and home.startswith("weft.")):
            yield key, value


def members(kind):
    """The public methods and properties that a class itself defines, with docstrings."""
    for key, value in vars(kind).items():
        found = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not key.startswith("_") and (inspect.isfunction(found) or isinstance(found, property)):
            yield key, found


def signature(name, value):
    """How it is called."""
    try:
        said = str(inspect.signature(value))
    except (TypeError, ValueError):
        return name
    said = re.sub(r"<(?:function|class|object) ([^>]*?)(?: at 0x\w+)?>", r"\1", said)
    return f"{name}{said}".replace("'", "")


def prose(doc):
    """A docstring as Markdown: examples become blocks."""
    out, inside = [], False
    for line in inspect.cleandoc(doc).split("\n"):
        example = line.startswith(">>>") or (inside and line.strip() != "")
        if example and not inside:
            out += ["", "```pycon"]
        elif inside and not example:
            out += ["```", ""]
        inside = example
        out.append(line)
    return "\n".join([*out, *(["```"] if inside else [])])


def entry(name, value):
    """One name."""
    parts = [f"## {name}", "", "```python", signature(name, value), "```", ""]
    parts += [prose(inspect.getdoc(value) or ""), ""]
    for key, member in members(value) if inspect.isclass(value) else ():
        doc = inspect.getdoc(member)
        if doc:
            if isinstance(member, property):
                said = f"**`.{key}`**"
            else:
                said = f"**`.{signature(key, member)}`**"
            parts += [said, "", prose(doc), ""]
    return "\n".join(parts)


def page(name):
    """The page of a module."""
    module = importlib.import_module(name)
    lead = (module.__doc__ or "").strip().split("\n\n")[0]
    parts = [f"# {name}", "", textwrap.dedent(lead), ""]
    return "\n".join([*parts, *(entry(key, value) for key, value in public(name))])


def pages():
    """Every page of the reference, by file name."""
    listed = [f"- [{name}]({name}.md): {about}" for name, about in MODULES.items()]
    first = "\n".join(["# Reference", "", "Made of the docstrings in the code.", "", *listed])
    return {"index.md": first, **{f"{name}.md": page(name) for name in MODULES}}


def on_post_page(output, page, config):
    """Nothing is fetched from elsewhere: a script for searching without a server is left out."""
    return re.sub(r'<script src="https?://[^"]*"></script>', "", output)


def on_config(config):
    """The pages that are made, those of single errors and every decision join the navigation."""
    errors = sorted(p.name for p in (ROOT / "docs" / "errors").glob("*.md"))
    if errors:
        config.nav.append({"Errors": [f"errors/{name}" for name in errors]})
    decisions = sorted(p.name for p in (ROOT / "docs" / "decisions").glob("*.md"))
    config.nav += [
        {"Reference": [f"reference/{name}" for name in pages()]},
        {"Inside": [{title: path} for path, title in INSIDE.items()]},
        {"Decisions": [f"decisions/{name}" for name in decisions]},
    ]
    return config


def on_files(files, config):
    """The reference as files, the index of decisions, and the pages beside `docs/`."""
    from mkdocs.structure.files import File  # the site's generator, present where this is called

    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links that leave `docs/` lead nowhere on the site: they become names of files."""

    def kept(found):
        text, target = found[1], found[2]
        inside = "://" in target or target.startswith("#")
        path = (ROOT / "docs" / page.file.src_uri).parent / target.split("#")[0]
        if inside or (path.resolve().is_relative_to(ROOT / "docs") and path.is_file()):
            return found[0]
        if path.resolve() == ROOT / "docs" / "decisions":
            first = sorted(p.name for p in path.resolve().glob("*.md"))[0]
            return f"[{text}](decisions/{first})"
        if path.suffix == ".md" and page.file.src_uri.startswith("reference/"):
            return found[0]
        shown = path.resolve()
        name = shown.relative_to(ROOT) if shown.is_relative_to(ROOT) else target
        return f"{text} (`{name}`)" if text != str(name) else f"`{name}`"

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", kept, markdown)
