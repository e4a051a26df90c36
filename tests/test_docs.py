"""What the documentation shows is true: its Python runs, and so do the examples in docstrings."""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = [
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for p in sorted((ROOT / "weft").rglob("*.py"))
    if p.name != "__main__.py"
]


def blocks(page):
    """(first line, source) of each Python block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m.group(1)) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p)], ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_python_on_a_page_runs(page, tmp_path, monkeypatch):
    """Blocks of one page share a namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for line, source in blocks(page):
        exec(compile("\n" * line + source, str(page), "exec"), namespace)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert not failed, f"{failed} of {tried} examples in {name}"


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(script):
    done = subprocess.run(
        [sys.executable, "-W", "error", script, "--quick"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
