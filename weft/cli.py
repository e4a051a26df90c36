"""The `weft` command: run and show programs in text form, look after the installation."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import weft
from weft.capture.evaluate import evaluate
from weft.codegen import jit
from weft.errors import ArtifactError, WeftError
from weft.ir import Function, Module, Node, to_text
from weft.ops.language import parse
from weft.runtime.cache import DiskCache
from weft.types import TensorType
from weft.types.dtype import bfloat16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 2 if what it was given is wrong."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:  # `weft show program.wir | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to flush
        return 0
    except (WeftError, OSError) as e:
        print(f"weft: {_message(e)}", file=sys.stderr)
        return 2


def _message(e: Exception) -> str:
    if isinstance(e, OSError) and e.strerror and not isinstance(e, WeftError):
        return f"{e.filename}: {e.strerror}" if e.filename else e.strerror
    return str(e)


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser("weft", description="Programs in text form, and the installation.")
    p.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    commands = p.add_subparsers(title="commands", required=True, metavar="command")

    run = commands.add_parser("run", help="run a program in text form")
    run.add_argument("program", help="a .wir file, - for standard input")
    run.add_argument(
        "-i", "--input", action="append", default=[], metavar="NAME=FILE", dest="inputs",
        help="an argument: x=x.npy, or lr=0.1 for a number",
    )  # fmt: skip
    run.add_argument(
        "-o", "--output", action="append", default=[], metavar="FILE", dest="outputs",
        help="where to write a result, in their order (.npy); printed if there is none",
    )  # fmt: skip
    run.add_argument("--function", default="", help="which function to run; the first if not said")
    run.set_defaults(run=_run)

    show = commands.add_parser("show", help="check a program and print it")
    show.add_argument("program", help="a .wir file, - for standard input")
    show.set_defaults(run=_show)

    doctor = commands.add_parser("doctor", help="versions, machine, and a check that all works")
    doctor.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="the kernels kept on disk")
    cache.add_argument("action", nargs="?", choices=("size", "clear"), default="size")
    cache.set_defaults(run=_cache)
    return p


# programs


def _read(path: str) -> Module:
    if path == "-":
        return parse(sys.stdin.read(), "<stdin>")
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read(), path)
    except UnicodeDecodeError as e:
        raise ArtifactError(path, expected="text in UTF-8", got=e.reason) from None


def _show(options: argparse.Namespace) -> int:
    print(to_text(_read(options.program)), end="")
    return 0


def _run(options: argparse.Namespace) -> int:
    module = _read(options.program)
    f = _function(module, options.function)
    given = dict(_named(f, said) for said in options.inputs)
    missing = [_label(p, i) for i, p in enumerate(f.params) if i not in given]
    if missing:
        raise ArtifactError(
            f"fn {f.name}",
            expected=f"an argument for {', '.join(missing)}",
            got=f"{len(given)} of {len(f.params)}",
            hint=f"say -i {missing[0]}=FILE.npy",
        )
    if len(options.outputs) > len(f.results):
        got = str(len(options.outputs))
        raise ArtifactError("-o", expected=f"at most {len(f.results)} results", got=got)
    results = evaluate(f, *(_load(given[i], p) for i, p in enumerate(f.params)))
    for path, r in zip(options.outputs, results, strict=False):
        with open(path, "wb") as file:
            np.save(file, np.asarray(r.numpy() if hasattr(r, "numpy") else r))
    for r in results if not options.outputs else ():
        print(r)
    return 0


def _function(module: Module, name: str) -> Function:
    if not name:
        return module.entry
    known = [f.name for f in module.functions]
    if name not in known:
        raise ArtifactError("--function", expected=f"one of {', '.join(known)}", got=name)
    return module[name]


def _label(p: Node, i: int) -> str:
    return p.name or str(i)


def _named(f: Function, said: str) -> tuple[int, str]:
    """The position of the parameter, and what is given for it."""
    name, equals, value = said.partition("=")
    names = [_label(p, i) for i, p in enumerate(f.params)]
    if not equals or names.count(name) != 1:
        raise ArtifactError("-i", expected=f"NAME=FILE with one of {', '.join(names)}", got=said)
    return names.index(name), value


def _load(value: str, p: Node) -> Any:
    """An argument from a file, or from the command line where it is a number."""
    type_: Any = p.type
    if not isinstance(type_, TensorType):
        try:
            return _truth(value) if type_ is bool else type_(value)
        except (ValueError, KeyError):
            wanted = f"a Python {type_.__name__}"
            raise ArtifactError(f"-i {p.name}", expected=wanted, got=value) from None
    try:
        array = np.load(value, allow_pickle=False)
    except (ValueError, EOFError):
        raise ArtifactError(value, expected="an array in a .npy file") from None
    if not isinstance(array, np.ndarray):
        raise ArtifactError(value, expected="one array", got="an archive of several")
    if type_.dtype is bfloat16 and array.dtype.kind in "Vu" and array.dtype.itemsize == 2:
        array = array.view(bfloat16.np)  # NumPy's format has no word for it
    return weft.asarray(array)


def _truth(said: str) -> bool:
    return {"true": True, "false": False}[said.lower()]


# the installation


def _cache(options: argparse.Namespace) -> int:
    cache = DiskCache()
    if cache.directory is None:
        print("no cache on disk")
        return 0
    before = cache.size()
    if options.action == "clear":
        cache.clear()
        print(f"{cache.directory}: {_size(before - cache.size())} removed")
    else:
        print(f"{cache.directory}: {_size(before)} of at most {_size(cache.limit)}")
    return 0


def _size(n: int) -> str:
    return f"{n / 2**20:.1f} MB"


def _doctor(options: argparse.Namespace) -> int:
    target = jit.host()
    wide = [f for f in ("avx512f", "avx2", "fma", "neon") if f"+{f}" in target.features.split(",")]
    cache = DiskCache()
    kept = f"{cache.directory} ({_size(cache.size())})" if cache.directory else "none"
    for name, said in (
        ("weft", weft.__version__),
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        *((package, _version(package)) for package in ("numpy", "llvmlite", "ml_dtypes")),
        ("cpu", f"{target.cpu}, {' '.join(wide)}"),
        ("threads", f"{weft.get_num_threads()} of {os.cpu_count()} cores"),
        ("cache", kept),
    ):
        print(f"{name:10}{said}")
    failed = 0
    for name, check in _CHECKS.items():
        start = time.perf_counter()
        try:
            fine = bool(check())
        except Exception as e:  # the point is to say what does not work
            fine, name = False, f"{name}: {type(e).__name__}: {e}"
        failed += not fine
        spent = 1e3 * (time.perf_counter() - start)
        print(f"{'ok' if fine else 'FAILED':10}{name} ({spent:.0f} ms)")
    return 2 if failed else 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _operands() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 65, 65)).astype(np.float32)
    return a, b


def _arithmetic() -> bool:
    a, b = _operands()
    return np.array_equal((weft.asarray(a) * b + a).numpy(), a * b + a)


def _product() -> bool:
    a, b = _operands()
    return np.allclose((weft.asarray(a) @ b).numpy(), a @ b, atol=1e-4)


def _gradient() -> bool:
    a, _ = _operands()
    given = weft.grad(lambda x: (x * x).sum())(weft.asarray(a))
    return np.array_equal(given.numpy(), a + a)


def _text() -> bool:
    text = "fn f(%x: f32[n]) -> f32[n] {\n  %y = add %x, 1.0\n  return %y\n}\n"
    (y,) = evaluate(parse(text).entry, weft.zeros(3))
    return np.array_equal(y.numpy(), np.ones(3))


_CHECKS = {
    "elementwise kernels": _arithmetic,
    "matrix product": _product,
    "gradient": _gradient,
    "program in text form": _text,
}


if __name__ == "__main__":
    sys.exit(main())
