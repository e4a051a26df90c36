"""What acts at run time, in order."""

import weft as wf
from control_programs.case import BOTH, X, Y, case


@case("print", *BOTH)
def printed(x, y):
    print("start", x, sep=" | ", end=" |\n")
    if x.sum() > 0:
        print("positive", {"y": [y, 1]}, (x.sum(),), None, True)
    n = 0
    while x.sum() < 9 and n < 3:
        x = x + y.abs()
        n += 1
        print(n, x.detach())
    print()
    return x


@case("f-strings and methods of text", *BOTH)
def formatted(x, y):
    loss = (x * y).sum()
    text = f"{loss.item():.3f} {x.detach()!r:>40} {loss.detach():+.1e} {'done':>{8}}|"
    braces, percent = "{} {:5.1f}", "%d: %s"
    for k in range(3):
        if x[k] > 0:
            print(text.upper() + ", " + braces.format(k, y[k].item()))
        else:
            print(percent % (k, " and ".join([f"{x[k].item()}", "no"])))
    return x * loss


@case("text of tensors, returned", (X, Y), (-X, Y))
def returned_text(x, y):
    total = (x * y).sum()
    text = f"{total.item():.2f}"
    if total > 0:
        total = total * 2
    return total, {"said": [text, text.upper()]}


@case("text of tensors, another on each path", (X, Y), (-X, Y))
def two_texts(x, y):
    if x.sum() > 0:
        text = f"{x.sum().item():.2f}"
    else:
        text = "negative"
    return text, y


@case("assert", (X, Y), (-X, Y), (X * 100, Y))
def asserted(x, y):
    n = 0
    while x.max() < 200:
        assert x.sum() > 0, f"the sum is {x.sum().item():.1f} after {n} steps"
        x = x * 2
        n += 1
        assert n < 9
    return x * y


@case("assert before what fails", (X, wf.tensor([0, 2])), (X, wf.tensor([0, 7])), gradient=False)
def guarded(table, i):
    assert (i < len(table)).all(), f"at most {i.max().item()}"
    row = wf.take(table, i, axis=0)
    print("taken", row)
    return row * 2


class Refusal(ValueError):
    def __init__(self, what, code):
        super().__init__(f"refused: {what}")
        self.code = code


@case("raise", *BOTH)
def raising(x, y):
    if x.sum() > 100:
        raise ValueError
    if x.sum() > 0:
        raise Refusal(f"{x.sum().item()}", y[0].item()) from KeyError("why")
    for k in range(3):
        if y[k] < -1:
            raise IndexError(k)
        y = y + x
    return x * y


@case("a condition of a loop that prints and assigns", (X, Y), (X * 100, Y))
def loud_condition(x, y):
    def asked(total):
        print("asked", total.item())
        return total < 40

    n = 0
    while asked(s := x.abs().sum()):
        x = x * 2
        n += 1
        if y[0] * n > 1:
            break
    else:
        y = y + 1
    return x * s + n * y
