"""The house keeps its order: a room imports only rooms above it, at the top of a file, without
cycles.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = [
    "errors",
    "types",
    "buffer",
    "ir",
    "ops",
    "autodiff",
    "control",
    "tensor",
    "capture",
    "passes",
    "schedule",
    "codegen",
    "runtime",
    "debug",
    "deploy",
    "nn",
    "optim",
    "data",
    "interop",
]
LAST = ROOMS.index("nn")  # from here on rooms are neighbours
TOP = {
    "__init__",
    "__main__",
    "compile",
    "modes",
    "cli",
    "fit",
    "bench",
    "demo",
    "doctor",
}  # beside the rooms: may import any
ONLY = {
    "llvmlite": {"codegen"},
    "onnx": {"deploy"},
    "safetensors": {"deploy", "nn"},
    "torch": {"interop"},
}
#: imported late on purpose: a process that finds all of its kernels on disk never needs it
LATE = {("weft.runtime.kernels", "weft.codegen.lower")}
NEVER = {"jax", "tensorflow", "onnxruntime", "scipy", "pytest", "mpmath"}
pytestmark = pytest.mark.tiny


def test_every_room_is_there():
    there = {p.stem for p in (ROOT / "weft").iterdir() if p.suffix == ".py" or p.is_dir()}
    assert there - {"__pycache__"} == {*ROOMS, *TOP}


def test_the_page_has_every_room():
    page = (ROOT / "docs/layout.md").read_text(encoding="utf-8")
    listed = page.partition("## Who may know whom")[2].partition("\n## ")[0]
    missing = [r for r in ROOMS if f"| `{r}/` |" not in listed and f"| `{r}.py` |" not in listed]
    free = [f for f in TOP if f"`{f}.py`" not in listed and f"`{f}/`" not in listed]
    assert not missing and set(free) <= {"__main__"}


def room(module):
    return module.split(".")[1] if "." in module else "__init__"


def rank(module):
    return min(ROOMS.index(room(module)), LAST)


class Tree:
    """The modules under a directory that holds a package `weft`, and what they import."""

    def __init__(self, root):
        self.root = root
        self.modules = {
            ".".join(p.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): p
            for p in sorted((root / "weft").rglob("*.py"))
        }
        self.imports = {m: list(self._imports(p)) for m, p in self.modules.items()}
        self.edges = {
            m: [i for i in found if i[0].split(".")[0] == "weft"]
            for m, found in self.imports.items()
        }

    def _imports(self, path):
        """(module imported, line, whether at the top of the file) of every import."""
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        top = {id(n) for n in tree.body}
        types = {id(n) for name in tree.body for n in _for_checkers(name, path.parent.name)}
        for node in ast.walk(tree):
            if id(node) in types:
                continue
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield alias.name, node.lineno, id(node) in top
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, (
                    f"{path}:{node.lineno}: write the whole name, not a relative one"
                )
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    known = whole if whole in self.modules else node.module
                    yield known, node.lineno, id(node) in top
            elif (name := _imported_by_call(node)) is not None:
                yield name, node.lineno, False

    def where(self, module, line):
        return f"{self.modules[module].relative_to(self.root)}:{line}"


def _for_checkers(node, room):
    """Imports `if TYPE_CHECKING:` from the same room: names for annotations, which never run."""
    if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
        for n in node.body:
            if isinstance(n, ast.ImportFrom) and n.module.startswith(f"weft.{room}."):
                yield n


def _imported_by_call(node):
    """The module that `import_module("...")` or `__import__("...")` names."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    f, first = node.func, node.args[0]
    called = f.id if isinstance(f, ast.Name) else getattr(f, "attr", "")
    if called not in ("import_module", "__import__") or not isinstance(first, ast.Constant):
        return None
    return str(first.value)


def unknown_rooms(tree):
    return sorted({room(m) for m in tree.modules} - {*ROOMS, *TOP})


def imports_downward(tree):
    return [
        f"{tree.where(module, line)} imports {target}"
        for module, edges in tree.edges.items()
        if room(module) not in TOP
        for target, line, _ in edges
        if room(target) in TOP or rank(target) > rank(module)
    ]


def imports_inside(tree):
    return [
        f"{tree.where(module, line)} imports {target} inside"
        for module, edges in tree.edges.items()
        for target, line, top in edges
        if not top and (module, target) not in LATE
    ]


def cycle(tree):
    """Modules that import each other in a circle."""
    state = {}

    def visit(module, path):
        if state.get(module) == "done":
            return []
        if state.get(module) == "open":
            return [*path[path.index(module) :], module]
        state[module] = "open"
        for target, _, _ in tree.edges.get(module, ()):
            if found := visit(target, [*path, module]):
                return found
        state[module] = "done"
        return []

    return next((found for module in tree.modules if (found := visit(module, []))), [])


def misplaced_packages(tree):
    return [
        f"{tree.where(module, line)} imports {package}"
        for module, found in tree.imports.items()
        for target, line, _ in found
        for package in [target.split(".")[0]]
        if package in NEVER or room(module) not in ONLY.get(package, {room(module)})
    ]


def too_long(tree):
    lengths = {m: len(p.read_text(encoding="utf-8").splitlines()) for m, p in tree.modules.items()}
    return {m: n for m, n in lengths.items() if n > 500}


CHECKS = (unknown_rooms, imports_downward, imports_inside, cycle, misplaced_packages, too_long)


@pytest.fixture(scope="module")
def weft():
    return Tree(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_the_house_has_no(check, weft):
    assert not check(weft)


FAULTS = {
    "unknown_rooms": {"cellar/wine.py": ""},
    "imports_downward": {"ops/a.py": "from weft.runtime import b", "runtime/b.py": ""},
    "imports_inside": {"nn/a.py": "def f():\n    from weft.nn import b", "nn/b.py": ""},
    "cycle": {"ops/a.py": "import weft.ops.b", "ops/b.py": "import weft.ops.a"},
    "misplaced_packages": {"nn/a.py": "def f():\n    import torch"},
    "too_long": {"nn/a.py": "\n" * 501},
}
HIDDEN = {
    "imports_downward": {"types/a.py": "import weft"},
    "imports_inside": {"nn/a.py": "import importlib\nimportlib.import_module('weft.nn')"},
    "misplaced_packages": {"runtime/a.py": "from llvmlite import binding"},
}


#: for checkers alone, but of another room
LENT = {"imports_inside": {"nn/a.py": "if TYPE_CHECKING:\n    from weft.ops import b"}}


@pytest.mark.parametrize(("name", "files"), [*FAULTS.items(), *HIDDEN.items(), *LENT.items()])
def test_a_fault_is_found(name, files, tmp_path):
    """By its own check and no other."""
    for place, text in files.items():
        path = tmp_path / "weft" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tree = Tree(tmp_path)
    assert [check.__name__ for check in CHECKS if check(tree)] == [name]


def test_the_whole_house_is_looked_at(weft):
    assert len(weft.modules) > 300 and sum(map(len, weft.edges.values())) > 1500
    assert set(FAULTS) == {check.__name__ for check in CHECKS}
