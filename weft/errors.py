"""Every exception Weft raises on purpose.

A message says four things: the place, what was expected, what was got, and what to do. Each class
also derives from the built-in that a NumPy or PyTorch user would catch.
"""

from __future__ import annotations


class WeftError(Exception):
    """Root of all Weft exceptions.

    >>> print(WeftError("matmul", expected="[m, k], [k, n]", got="f32[4, 5] twice", hint="use .T"))
    matmul: expected [m, k], [k, n], got f32[4, 5] twice; use .T
    """

    def __init__(self, place: str, *, expected: str = "", got: str = "", hint: str = "") -> None:
        self.place, self.expected, self.got, self.hint = place, expected, got, hint
        clauses = [f"expected {expected}" * bool(expected), f"got {got}" * bool(got)]
        said = ", ".join(c for c in clauses if c)
        self.__suppress_context__ = (
            True  # a look-up that missed on the way here is no cause worth showing
        )
        super().__init__("; ".join(p for p in (f"{place}: {said}" if said else place, hint) if p))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.place, self.expected, self.got, self.hint)


def _rebuild(kind: type[WeftError], place: str, expected: str, got: str, hint: str) -> WeftError:
    return kind(place, expected=expected, got=got, hint=hint)


def called(error: WeftError, place: str) -> WeftError:
    """The same error of a function that the user called, in which an op of another name failed.

    >>> print(called(ShapeError("contract", got="f32[3]"), "linear"))
    linear: got f32[3]
    """
    return _rebuild(type(error), place, error.expected, error.got, error.hint)


class ShapeError(WeftError, ValueError):
    """Shapes, axes or sizes that do not satisfy an op's rule.

    >>> import weft as wf
    >>> wf.ones((2, 3)) @ wf.ones((2, 3))
    Traceback (most recent call last):
    weft.errors.ShapeError: ...
    """


class DTypeError(WeftError, TypeError):
    """A dtype, or the type of a Python argument, that an op does not take.

    >>> import weft as wf
    >>> wf.tensor("text")
    Traceback (most recent call last):
    weft.errors.DTypeError: ...
    """


class IndexRangeError(WeftError, IndexError):
    """An index outside the axis it indexes.

    >>> import weft as wf
    >>> wf.ones((3,))[5]
    Traceback (most recent call last):
    weft.errors.IndexRangeError: ...
    """


class IndexTypeError(DTypeError, IndexError):
    """Something that cannot be an index, such as a float.

    >>> import weft as wf
    >>> wf.ones((3,))[0.5]
    Traceback (most recent call last):
    weft.errors.IndexTypeError: ...
    """


class SharingError(DTypeError, BufferError, ValueError):
    """Memory that cannot be shared as it is, where no copy was allowed.

    >>> import weft as wf
    >>> wf.asarray([1.0], copy=False)
    Traceback (most recent call last):
    weft.errors.SharingError: ...
    """


class DivisionError(WeftError, ZeroDivisionError):
    """Integer division by a Python zero.

    >>> import weft as wf
    >>> wf.tensor([1, 2]) // 0
    Traceback (most recent call last):
    weft.errors.DivisionError: ...
    """


class GradError(WeftError, RuntimeError):
    """A gradient asked for where none can be had.

    >>> import weft as wf
    >>> wf.ones((3,)).backward()
    Traceback (most recent call last):
    weft.errors.GradError: ...
    """


class DepthError(WeftError, RecursionError):
    """A function of a program that calls itself without end, or deeper than memory allows.

    >>> isinstance(DepthError("call"), RecursionError)
    True
    """


class AllocationError(WeftError, MemoryError):
    """More memory than the machine can give.

    >>> isinstance(AllocationError("empty"), MemoryError)
    True
    """


class CaptureError(WeftError, RuntimeError):
    """A function that cannot be captured whole.

    >>> import weft as wf
    >>> wf.trace(lambda x: x if x.sum() > 0 else -x, wf.ones((2,)))
    Traceback (most recent call last):
    weft.errors.CaptureError: ...
    """


class CaptureWarning(UserWarning):
    """A function that runs eagerly because it cannot be captured whole.

    >>> issubclass(CaptureWarning, UserWarning)
    True
    """


class GuardError(WeftError, RuntimeError):
    """A compiled program called with arguments it was not captured for.

    >>> import weft as wf
    >>> double = wf.trace(lambda x: x * 2, wf.ones((2,)))
    >>> double(wf.ones((3,)))
    Traceback (most recent call last):
    weft.errors.GuardError: ...
    """


class StateError(WeftError, RuntimeError):
    """Saved state that does not fit what it is loaded into: entries missing, unknown, misshapen.

    >>> import weft as wf
    >>> wf.nn.Linear(3, 2).load_state_dict({})
    Traceback (most recent call last):
    weft.errors.StateError: ...
    """


class ArtifactError(WeftError, ValueError):
    """A file that is damaged, hostile or of another version.

    >>> import weft as wf
    >>> wf.load("/dev/null")
    Traceback (most recent call last):
    weft.errors.ArtifactError: ...
    """


class ExportError(WeftError, RuntimeError):
    """A program that the target format cannot express.

    >>> isinstance(ExportError("onnx"), RuntimeError)
    True
    """


class NumericsError(WeftError, ArithmeticError):
    """A value that is not finite, or not representable, where that was asked to be an error.

    >>> isinstance(NumericsError("nan_check"), ArithmeticError)
    True
    """


class DeviceError(WeftError, RuntimeError):
    """A machine that cannot do what was asked, with what to do about it.

    >>> isinstance(DeviceError("cpu"), RuntimeError)
    True
    """


class ProgramError(WeftError, ValueError):
    """A program, as text or as a graph, that breaks the rules of the IR. `excerpt` shows where.

    >>> from weft.ops.language import parse
    >>> parse("fn f() -> f32[] { return %x }")
    Traceback (most recent call last):
    weft.errors.ProgramError: ...
    """

    def __init__(
        self, place: str, *, expected: str = "", got: str = "", hint: str = "", excerpt: str = ""
    ) -> None:
        super().__init__(place, expected=expected, got=got, hint=hint)
        self.excerpt = excerpt

    def __str__(self) -> str:
        return super().__str__() + (f"\n{self.excerpt}" if self.excerpt else "")

    def __reduce__(self) -> tuple[object, ...]:
        said = {"expected": self.expected, "got": self.got, "hint": self.hint}
        return _rebuild_program, (self.place, said, self.excerpt)


def _rebuild_program(place: str, said: dict[str, str], excerpt: str) -> ProgramError:
    return ProgramError(place, excerpt=excerpt, **said)
