"""The `weft` command: a demonstration, programs in text form, benchmarks, the installation."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft
from weft.bench import SUITES, bench, compare, suite_is_here
from weft.capture.evaluate import evaluate
from weft.compile import optimise
from weft.demo import tell
from weft.doctor import examine, size
from weft.errors import ArtifactError, WeftError
from weft.ir import Function, Module, Node, to_text
from weft.ir.literals import type_text
from weft.ops.language import parse, verify
from weft.runtime.cache import DiskCache
from weft.types import TensorType
from weft.types.dtype import bfloat16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 1 if a promise does not hold, 2 if something is wrong with
    what it was given or with the machine, 130 if Ctrl-C ended it.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("weft: interrupted", file=sys.stderr)
        return 130
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
    p = argparse.ArgumentParser(
        "weft",
        description="Weft: one program, both kinds of graph, the same bits.",
        epilog="Exit code: 0 all is well, 1 a promise does not hold, 2 wrong input or machine. "
        "`weft COMMAND --help` says more of each.",
    )
    p.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    p.set_defaults(run=None)
    commands = p.add_subparsers(title="commands", metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="see what Weft does, measured here, in under two minutes",
        description="Train, compile, branch, fail: each promise is tried on this machine. Writes "
        "to a folder of its own, and machine code to the kernel cache; both are named.",
    )
    demo.add_argument("--plain", action="store_true", help="no colours, no moving bars")
    demo.add_argument("--short", action="store_true", help="a few steps only (WEFT_DEMO_SHORT=1)")
    demo.add_argument("--folder", default="", help="where its programs go; a new one if not said")
    demo.set_defaults(run=_demo)

    run = commands.add_parser(
        "run",
        help="run a program in text form",
        description="weft run model.wir -i x=x.npy -i rate=0.1 -o y.npy",
    )
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
    show.add_argument("--optimised", action="store_true", help="as it is after all passes")
    show.set_defaults(run=_show)

    bench = commands.add_parser(
        "bench",
        help="how fast it is here, beside others",
        description="In a clone of the repository: Weft beside the peers that are installed "
        "(docs/benchmarks.md). Elsewhere, or with --small: eager, compiled and NumPy.",
    )
    bench.add_argument(
        "rows", nargs="*", help="rows of the suite: W3 W7, or matmul of the eager one"
    )
    bench.add_argument("--suite", choices=SUITES, default="compiled", help="compiled if not said")
    bench.add_argument("--peers", default="", help="of these only: weft,torch.eager,jax")
    bench.add_argument("--small", action="store_true", help="the comparison without peers")
    bench.add_argument("--quick", action="store_true", help="a tenth of the time per row")
    bench.add_argument("--json", default="", metavar="FILE", help="write the figures to a file")
    bench.set_defaults(run=_bench, fail=bench.error)

    doctor = commands.add_parser(
        "doctor",
        help="versions, machine, measured limits, missing extras, and a check that all works",
    )
    doctor.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="the kernels kept on disk")
    cache.add_argument(
        "action", nargs="?", choices=("size", "clear"), default="size",
        help="say how large it is (so if nothing is said), or delete all in it",
    )  # fmt: skip
    cache.set_defaults(run=_cache)
    return p


# programs


def _read(path: str) -> Module:
    try:
        if path == "-":
            module = parse(sys.stdin.read(), "<stdin>")
        else:
            with open(path, encoding="utf-8") as file:
                module = parse(file.read(), path)
    except UnicodeDecodeError as e:
        raise ArtifactError(path, expected="text in UTF-8", got=e.reason) from None
    verify(module)
    return module


def _show(options: argparse.Namespace) -> int:
    module = _read(options.program)
    if options.optimised:
        module = Module(tuple([optimise(f) for f in module.functions]))
    print(to_text(module), end="")
    return 0


def _run(options: argparse.Namespace) -> int:
    module = _read(options.program)
    f = _function(module, options.function)
    pairs = [_named(f, said) for said in options.inputs]
    given = dict(pairs)
    if len(given) < len(pairs):
        got = " ".join(options.inputs)
        raise ArtifactError("-i", expected="each argument once", got=got)
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
    if not equals or not value or names.count(name) != 1:
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
    except FileNotFoundError as e:
        wanted, got = f"{type_text(type_)}, an array in a .npy file", f"{value}: {e.strerror}"
        raise ArtifactError(f"-i {p.name}", expected=wanted, got=got) from None
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
        left = cache.size()
        print(f"{cache.directory}: {size(before - left)} removed")
        if left:
            print(f"weft: {cache.directory}: {size(left)} can't be removed", file=sys.stderr)
            return 2
    else:
        print(f"{cache.directory}: {size(before)} of at most {size(cache.limit)}")
        if trouble := cache.trouble():
            print(f"nothing is added to it: {trouble}")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    return examine()


# what it can do


def _demo(options: argparse.Namespace) -> int:
    steps = 20 if options.short or os.environ.get("WEFT_DEMO_SHORT") == "1" else 400
    return tell(options.plain, steps, options.folder)


def _bench(options: argparse.Namespace) -> int:
    if options.json:  # known before minutes are spent
        open(options.json, "a", encoding="utf-8").close()
    if options.small or not suite_is_here():
        if options.rows or options.peers:
            options.fail(
                "rows and peers are those of the suite: without --small, in the repository"
            )
        return compare(0.02 if options.quick else 0.2, options.json)
    eager = options.suite == "eager"
    if eager and options.peers:
        options.fail("the eager suite has one peer, PyTorch")
    given = ["--only", " ".join(options.rows)] if eager and options.rows else options.rows
    given = [*given, *(["--quick"] if options.quick else [])]
    given += ["--peers", options.peers] if options.peers else []
    given += ["--json", os.path.abspath(options.json)] if options.json else []
    return bench(options.suite, given)


if __name__ == "__main__":
    sys.exit(main())
