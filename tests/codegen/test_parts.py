"""Modules taken apart compute what they did, and what they have in common is one text."""

import ctypes

import pytest

from weft.codegen import jit
from weft.codegen.parts import LEAST, apart

pytestmark = pytest.mark.tiny

KIND = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
LONG = "".join(f"  %a{n} = xor i64 %a{n - 1}, {n}\n" for n in range(1, LEAST // 10))
LAST = f"%a{LEAST // 10 - 1}"


def long(name, first="%x"):
    return (
        f"define internal i64 @{name}(i64 %x) noinline nounwind {{\n"
        f"  %a0 = add i64 {first}, 0\n{LONG}  ret i64 {LAST}\n}}\n"
    )


def long_through(name, called, argument="i64 %x"):
    return (
        f"define internal i64 @{name}(i64 %x) noinline nounwind {{\n"
        f"  %a0 = call i64 @{called}({argument})\n{LONG}  ret i64 {LAST}\n}}\n"
    )


SMALL = """
define internal i64 @small(i64 %x) noinline nounwind {
  %y = mul i64 %x, 3
  ret i64 %y
}
"""


def kernel(*names):
    calls = "".join(f"  %r{n} = call i64 @{x}(i64 %r{n - 1})\n" for n, x in enumerate(names, 1))
    return (
        "define i64 @kernel(i64 %x) {\n  %r0 = add i64 %x, 1\n"
        f"{calls}  ret i64 %r{len(names)}\n}}\n"
    )


def results(*texts):
    code = jit.Code(*(jit.compile_object(t) for t in texts))
    call = KIND(code.address("kernel"))
    return [call(n) for n in (0, 1, 77, 1 << 40)]


def test_a_module_taken_apart_computes_the_same():
    text = SMALL + long("one") + long_through("two", "small") + kernel("one", "two", "small")
    main, *parts = apart(text)
    assert len(parts) == 2
    assert "@one" not in main and "@small" in main
    assert results(main, *parts) == results(text)


def test_parts_call_each_other():
    text = long("one") + long_through("two", "one") + kernel("two", "one")
    main, *parts = apart(text)
    assert len(parts) == 2
    assert sum(p.count(LONG) for p in parts) == 2  # none holds the other's code too
    assert results(main, *parts) == results(text)


def test_one_function_of_two_modules_is_one_part():
    a = apart(long("one") + kernel("one"))
    b = apart(SMALL + long("one") + kernel("one", "small"))
    assert a[1:] == b[1:]
    other = apart(long("one", "1") + kernel("one"))
    assert a[1:] != other[1:]


def test_addresses_of_parts_can_be_taken():
    table = "@table = internal constant [1 x ptr] [ptr @one]\n"
    body = (
        "define i64 @kernel(i64 %x) {\n  %f = load ptr, ptr @table\n"
        "  %r = call i64 %f(i64 %x)\n  ret i64 %r\n}\n"
    )
    text = table + long("one") + body
    main, *parts = apart(text)
    assert len(parts) == 1
    assert results(main, *parts) == results(text)


def test_what_needs_variables_or_is_short_stays():
    variable = "@v = internal constant i64 5\n"
    reads = long("one", "%w").replace("  %a0", "  %w = load i64, ptr @v\n  %a0")
    text = variable + reads + SMALL + kernel("one", "small")
    assert len(apart(text)) == 1
    assert results(*apart(text)) == results(text)
