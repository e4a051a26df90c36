"""What the documentation shows is true: its Python runs, and so do the examples in docstrings."""

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weft.errors

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [p for p in sorted((ROOT / "weft").rglob("*.py")) if p.name != "errors.py"]
MODULES = [
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for p in sorted((ROOT / "weft").rglob("*.py"))
    if p.name != "__main__.py"
]


def python_of(page):
    """The page with all but its Python blocked out, so that lines keep their numbers."""
    out, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        inside = line == "```python" if fence else inside
        out.append(line if inside and not fence else "")
    return "\n".join(out)


def run(script, *args):
    """A script in a process of its own: what it defines is gone afterwards."""
    return subprocess.run(
        [sys.executable, "-W", "error", script, *args],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if python_of(p).strip()],
    ids=lambda p: p.relative_to(ROOT).as_posix(),
)
def test_python_on_a_page_runs(page, tmp_path):
    """Blocks of one page share a namespace, as a reader would type them."""
    script = tmp_path / f"{page.name}.py"
    script.write_text(python_of(page), encoding="utf-8")
    done = run(script)
    assert done.returncode == 0, done.stderr


def named_errors():
    """The exceptions and warnings that Weft raises, by name."""
    code = "\n".join(p.read_text(encoding="utf-8") for p in CODE)
    kinds = {n for n, k in vars(weft.errors).items() if isinstance(k, type)} - {"WeftError"}
    return sorted(n for n in kinds if re.search(rf"\b{n}[(,]", code))


@pytest.mark.parametrize("name", named_errors())
def test_an_error_has_a_page_on_which_it_happens(name):
    index = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    words = name.replace("DType", "Dtype")
    page = re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower() + ".md"
    assert f"| [{name}](errors/{page}) |" in index
    script = python_of(ROOT / "docs" / "errors" / page)
    assert re.search(rf"fails\(\s*(errors\.{name}|\w+, x\))|is {name}\b", script)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert not failed, f"{failed} of {tried} examples in {name}"


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))  # code has none
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(script):
    done = run(script, "--quick")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_say_their_options(script):
    """And do nothing when another one is given."""
    said, wrong = run(script, "--help"), run(script, "--quik=1")
    assert said.returncode == 0 and "--quick" in said.stdout
    assert wrong.returncode == 2 and not wrong.stdout
