"""docs/layout.md is the way through the house: every file and name on it is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = "docs/layout.md"
#: rooms of which the page names every file
MAPPED = ("capture/source", "passes")
pytestmark = pytest.mark.tiny


def sections(page):
    return re.split(r"(?m)^## ", page)


def quoted(text):
    return re.findall(r"`([^`\n]+)`", text)


def lost_paths(page, root):
    """Paths on the page that lead nowhere: from `weft/` or the root, or, where only a name is
    given, from a folder that its section named before.
    """
    lost = []
    for section in sections(page):
        folders = []
        for name in quoted(section):
            if not re.fullmatch(r"[\w/]+(\.py|\.ll|\.md|/)", name):
                continue
            bases = [root / "weft", root, *folders]
            found = [b / name for b in bases if (b / name).exists()]
            if found:
                folders.append(found[0] if found[0].is_dir() else found[0].parent)
            else:
                lost.append(name)
    return lost


def lost_names(page, root):
    """Functions, classes and constants on the page that no file of the package has."""
    code = "\n".join(p.read_text(encoding="utf-8") for p in (root / "weft").rglob("*.py"))
    code += "\n".join(p.read_text(encoding="utf-8") for p in (root / "weft").rglob("*.ll"))
    words = set(re.findall(r"\w+", code))
    dotted = [n for n in quoted(page) if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", n)]
    names = [n for n in dotted if not n.endswith((".py", ".ll", ".md"))]
    return [n for n in names if not set(n.split(".")) <= words]


def test_every_path_on_the_page_is_there():
    assert lost_paths((ROOT / PAGE).read_text(encoding="utf-8"), ROOT) == []


def test_every_name_on_the_page_is_there():
    assert lost_names((ROOT / PAGE).read_text(encoding="utf-8"), ROOT) == []


@pytest.mark.parametrize("room", MAPPED)
def test_the_map_of_a_room_is_whole(room):
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    files = {p.name for p in (ROOT / "weft" / room).glob("*.py")} - {"__init__.py"}
    missing = {f for f in files if f"`{f}`" not in page and f"`{room}/{f}`" not in page}
    assert not missing, f"{PAGE} says nothing of {sorted(missing)}"


def test_what_is_not_there_is_found(tmp_path):
    (tmp_path / "weft" / "room").mkdir(parents=True)
    (tmp_path / "weft" / "room" / "a.py").write_text("def f(): ...\n")
    page = "## One\n`room/a.py`, `a.py`, `f`, `room/b.py`, `g`\n## Two\n`a.py`, `room/`, `a.py`"
    assert lost_paths(page, tmp_path) == ["room/b.py", "a.py"]
    assert lost_names(page, tmp_path) == ["g"]
