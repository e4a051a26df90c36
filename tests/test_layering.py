"""The house keeps its order: a room imports only rooms above it, at the top of a file, without
cycles.
"""

import ast
from functools import cache
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
    "distributed",
    "interop",
]
LAST = ROOMS.index("nn")  # from here on rooms are neighbours
TOP = {
    "__init__",
    "__main__",
    "compile",
    "modes",
    "cli",
    "export",
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
NEVER = {"jax", "tensorflow", "onnxruntime", "scipy", "pytest", "mpmath"}
MODULES = {
    ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
    for p in sorted((ROOT / "weft").rglob("*.py"))
}

pytestmark = pytest.mark.tiny


def room(module):
    return module.split(".")[1] if "." in module else "__init__"


def rank(module):
    return min(ROOMS.index(room(module)), LAST)


@cache
def imports(path):
    """(module imported, line, whether at the top of the file) of every import."""
    return list(_imports(path))


def _imports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    top = {id(n) for n in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}:{node.lineno}: write the whole name, not a relative one"
            )
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module, node.lineno, id(node) in top


EDGES = {m: [i for i in imports(p) if i[0].split(".")[0] == "weft"] for m, p in MODULES.items()}


def where(module, line):
    return f"{MODULES[module].relative_to(ROOT)}:{line}"


def test_every_file_is_in_a_known_room():
    assert {room(m) for m in MODULES} <= {*ROOMS, *TOP}


def test_rooms_import_only_rooms_above_them():
    wrong = []
    for module, edges in EDGES.items():
        if room(module) in TOP:
            continue
        for target, line, _ in edges:
            if room(target) in TOP or rank(target) > rank(module):
                wrong.append(f"{where(module, line)} imports {target}")
    assert not wrong


def test_weft_is_imported_at_the_top_of_files_only():
    assert not [
        f"{where(m, line)} imports {target} inside"
        for m, edges in EDGES.items()
        for target, line, top in edges
        if not top
    ]


def test_no_module_imports_itself_through_others():
    state = {}

    def visit(module, path):
        if state.get(module) == "done":
            return
        assert state.get(module) != "open", " -> ".join([*path[path.index(module) :], module])
        state[module] = "open"
        for target, _, _ in EDGES.get(module, ()):
            visit(target, [*path, module])
        state[module] = "done"

    for module in MODULES:
        visit(module, [])


def test_other_packages_stay_where_they_belong():
    wrong = []
    for module, path in MODULES.items():
        for target, line, _ in imports(path):
            package = target.split(".")[0]
            if package in NEVER or room(module) not in ONLY.get(package, {room(module)}):
                wrong.append(f"{where(module, line)} imports {package}")
    assert not wrong


def test_no_file_is_longer_than_500_lines():
    lengths = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES.values()}
    assert not {str(p.relative_to(ROOT)): n for p, n in lengths.items() if n > 500}


def test_these_tests_can_fail():
    """The checks above see what they should: a file with every fault is found out."""
    source = "import torch\nfrom weft.codegen import jit\ndef f():\n    import weft.nn\n"
    tree = [*ast.walk(ast.parse(source))]
    assert sum(isinstance(n, ast.Import | ast.ImportFrom) for n in tree) == 3
    assert (
        ROOMS.index("types") < ROOMS.index("ops") < ROOMS.index("codegen") < ROOMS.index("runtime")
    )
    assert len(MODULES) > 20 and sum(map(len, EDGES.values())) > 40
