"""Every public name is documented with an example, and the site has every page."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def script(path):
    """A script of `docs/` as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = script(ROOT / "docs" / "reference.py")
NAMES = {
    f"{module}.{name}": value
    for module in reference.MODULES
    for name, value in reference.public(module)
}

pytestmark = pytest.mark.tiny


def test_a_public_name_says_what_it_gives_with_an_example():
    known = {"weft.compile", "weft.Tensor", "weft.nn.Linear", "weft.errors.ShapeError"}
    assert len(NAMES) > 400 and known <= NAMES.keys()
    docs = {name: inspect.getdoc(value) or "" for name, value in NAMES.items()}
    # examples are run by test_docs.py
    assert not [name for name, doc in docs.items() if doc[:3] in ("", ">>>") or ">>> " not in doc]


def test_methods_of_tensors_are_documented():
    import weft as wf

    for name, member in reference.members(wf.Tensor):
        assert inspect.getdoc(member), name


def test_the_reference_has_every_name():
    pages = reference.pages()
    for module in reference.MODULES:
        text = pages[f"{module}.md"]
        for name, _ in reference.public(module):
            assert f"\n## {name}\n" in text
        assert " at 0x" not in text
        assert text.count("```") % 2 == 0
        assert f"({module}.md)" in pages["index.md"]


def test_every_page_is_in_the_navigation_of_the_site():
    said = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/]+\.md)$", said, re.MULTILINE)) | set(reference.INSIDE)
    pages = {p.name for p in (ROOT / "docs").glob("*.md")}
    assert listed == pages
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert all(f"({name})" in index for name in pages - {"index.md"})


def test_the_picture_is_what_its_script_draws():
    drawn = script(ROOT / "docs" / "picture.py").picture()
    assert drawn == (ROOT / "docs" / "weft.svg").read_text(encoding="utf-8")


def test_links_out_of_the_site_become_names_of_files():
    class Page:
        class file:
            src_uri = "compile.md"

    def made(text):
        return reference.on_page_markdown(text, Page, None, None)

    assert made("see [tour](tour.md#a)") == "see [tour](tour.md#a)"
    assert made("see [laws](../tests/laws/lab.py)") == "see laws (`tests/laws/lab.py`)"
    assert made("[000](decisions)").startswith("[000](decisions/0")
