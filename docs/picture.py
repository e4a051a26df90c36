"""Draws docs/weft.svg: `python docs/picture.py`. A test holds the file to what this draws."""

from pathlib import Path

WEFT, WARP, INK, GREY = "#b45309", "#0f766e", "#0f172a", "#475569"
PROGRAM = ("def step(x, y):", "    loss = F.mse_loss(model(x), y)", "    loss.backward()",
           "    optimizer.step()", "    return loss")  # fmt: skip
EAGER = (("one op", "a record"), ("one kernel", "from the cache"), ("a value", "print it"))
COMPILED = (("one graph", "branches, loops"), ("fused", "bits kept"), ("one program", "native"))


def text(x, y, said, colour=INK, size=14, anchor="middle", more=""):
    said = said.replace("&", "&amp;").replace("<", "&lt;")
    at = f'x="{x}" y="{y}" fill="{colour}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {at} xml:space="preserve" {more}>{said}</text>'


def box(x, y, width, height, colour):
    at = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="8"'
    return f'<rect {at} fill="#ffffff" stroke="{colour}" stroke-width="1.4"/>'


def arrow(colour, *points):
    """A smooth line through points, level at its ends."""
    (x0, y0), (x1, y1) = points
    middle = (x0 + x1) / 2
    path = f"M{x0},{y0} C{middle:g},{y0} {middle:g},{y1} {x1 - 7},{y1}"
    tip = f"M{x1 - 8},{y1 - 4} L{x1},{y1} L{x1 - 8},{y1 + 4} z"
    line = f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.2"/>'
    return f'{line}<path d="{tip}" fill="{colour}"/>'


def flow(y, colour, stages):
    """Three boxes in a row, with arrows from the program, between them, and to the bits."""
    out = [arrow(colour, (294, 150 + (y > 150) * 20), (330, y + 28))]
    for i, (name, note) in enumerate(stages):
        x = 330 + 130 * i
        out += [box(x, y, 104, 56, colour), text(x + 52, y + 25, name)]
        out += [text(x + 52, y + 43, note, GREY, 12)]
        if i:
            out.append(arrow(colour, (x - 26, y + 28), (x, y + 28)))
    return [*out, arrow(colour, (694, y + 28), (734, 150 + (y > 150) * 20))]


def picture():
    """The whole of it."""
    mono = 'font-family="ui-monospace, monospace"'
    head = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 320" role="img"'
    said = "One Python program runs op by op or as one compiled program, and gives the same bits"
    font = "ui-sans-serif, system-ui, sans-serif"
    out = [
        f'<svg {head} font-family="{font}" aria-label="{said}">',
        '<rect width="880" height="320" fill="#f8fafc" rx="10"/>',
        text(330, 44, "dynamic: the weft moves", WEFT, 14, "start", 'font-weight="600"'),
        text(330, 286, "static: the warp holds still", WARP, 14, "start", 'font-weight="600"'),
        box(20, 98, 274, 124, INK),
        *(text(34, 124 + 20 * i, s, INK, 12, "start", mono) for i, s in enumerate(PROGRAM)),
        *flow(60, WEFT, EAGER),
        *flow(204, WARP, COMPILED),
        box(734, 122, 126, 76, INK),
        text(797, 154, "the same bits"),
        text(797, 176, "3f9d70a4 ≡ 3f9d70a4", GREY, 10, "middle", mono),
        text(157, 244, "errors, graphs and guards", GREY, 12),
        text(157, 260, "point back to these lines", GREY, 12),
        "</svg>",
    ]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("weft.svg").write_text(picture(), encoding="utf-8")
