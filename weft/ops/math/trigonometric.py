"""sin, cos and tan, right for every argument.

In float64, x * 2/pi modulo 4 is an integer product: the significand of x times the bits of 2/pi
that stand at its exponent (Payne and Hanek, Radian reduction for trigonometric functions, 1983).
float32 computes in float64, where a few exact products do the same, and rounds once. Huge arguments
cost what small ones do.
"""

from __future__ import annotations

from itertools import pairwise

from weft.ops.scalar import INF, NAN, PI, Scalar, const, fma, horner, mulhi, rint, select
from weft.types.dtype import float32, float64, int64, uint64

#: the bits of 2/pi behind the point
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73e"
    "e88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b7"
    "4f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d",
    16,
)
_WORDS = [0, *(_TWO_OVER_PI >> (64 * (19 - i)) & (2**64 - 1) for i in range(20))]
_QUARTER = 1.5707963267948966 * 2.0**-64  # pi/2 for a fraction held as an integer
_QUARTER_LOW = 6.123233995736766e-17 * 2.0**-64

#: (sin(r) / r - 1) / r**2 in r**2 on |r| <= pi/4: 2**-37.6 and 2**-58.0
_SIN = {
    float32: (
        2.7182378023529334e-06, -0.0001983932719513487, 0.008333329362469676, -0.16666666641427869,
    ),
    float64: (
        1.589668175938451e-10, -2.5050756713392568e-08, 2.75573136875704e-06,
        -0.00019841269829813416, 0.008333333333322455, -0.16666666666666632,
    ),
}  # fmt: skip
#: (cos(r) - 1 + r**2 / 2) / r**4 in r**2 on |r| <= pi/4: 2**-33.3 and 2**-64.2
_COS = {
    float32: (2.4437729014623737e-05, -0.0013887361440188906, 0.041666646747536056),
    float64: (
        -1.13598023385755e-11, 2.0875727057237864e-09, -2.7557314387463075e-07,
        2.4801587289636307e-05, -0.0013888888888874441, 0.0416666666666666,
    ),
}  # fmt: skip


def _window(place: Scalar, words: int, last: int) -> list[Scalar]:
    """`words` words of 2/pi from bit `place` (0..last) on, after a word of zeros."""
    word, shift = place >> 6, place & 63
    found = [const(w, uint64) for w in _WORDS[: last // 64 + words + 1]]
    step = 1 << ((last // 64).bit_length() - 1)
    while step:  # a barrel shifter over words, the wide steps first
        moved = (word & step).ne(0)
        keep = min(len(found), words + step)
        found = [
            select(moved, found[i + step], f) if i + step < len(found) else f
            for i, f in enumerate(found[:keep])
        ]
        step >>= 1
    return [(a << shift) | ((b >> 1) >> (shift ^ 63)) for a, b in pairwise(found)][:words]


def _turn(power: int) -> list[float]:
    """The fraction of 2**power / (2 pi) in four parts: three of 29 bits, and the rest."""
    n = _TWO_OVER_PI << power & (2**1282 - 1)
    parts = [(n >> (1282 - k) & (2**29 - 1)) * 2.0**-k for k in (29, 58, 87)]
    return [*parts, (n >> 1115 & (2**80 - 1)) * 2.0**-167]


def _reduce32(x: Scalar) -> tuple[Scalar, Scalar]:
    """r with x = n pi/2 + r, |r| <= pi/4, and n (its last two bits), for a float64 x >= 0 that was
    a float32.

    Beyond 2**77, x is a multiple s of 2**54, so s times the fraction of 2**54 / (2 pi) has the
    fraction of x / (2 pi). The products with parts of 29 bits are exact, and so are their
    fractions. Where the sum of these cancels, it is exact too, or the small parts are too small to
    matter.
    """
    huge = x >= 2.0**77
    near, far = _turn(0), _turn(54)
    *parts, rest = (select(huge, x.like(b), x.like(a)) for a, b in zip(near, far, strict=True))
    s = select(huge, x * 2.0**-54, x)
    first, second, third = (turns - rint(turns) for turns in (s * part for part in parts))
    magic = 1.5 * 2.0**52
    z = fma((first + second) + third, 4.0, magic)
    r = fma(s, rest, (fma(z - magic, -0.25, first) + second) + third)
    return r * (2.0 * PI), z.bitcast(uint64)


def _fraction64(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """Of |x| * 2/pi: the fraction times 2**64, in -1/2..1/2, as a sum of two, and the nearest
    integer mod 4.
    """
    raw = x.bitcast(uint64)
    m = (raw & (2**52 - 1)) | 2**52
    place = ((raw >> 52) & 2047) - (1023 + 52 - 62)
    high, middle, low = _window(place, 3, 971 + 62)
    least = m * middle
    t_low = least + mulhi(m, low)
    carry = select(t_low < least, t_low.like(1), t_low.like(0))
    t_high = m * high + mulhi(m, middle) + carry
    t = (t_high << 2) | (t_low >> 62)
    top = (t & -2048).cast(int64).cast(float64)
    rest = fma(
        (t_low & (2**62 - 1)).cast(int64).cast(float64),
        2.0**-62,
        (t & 2047).cast(int64).cast(float64),
    )
    return top, rest, (t_high + 2**61) >> 62


def _reduce(x: Scalar, narrow: bool) -> tuple[Scalar, Scalar, Scalar]:
    """|x| = n pi/2 + r + low with |r| <= pi/4, and n (its last two bits)."""
    size = abs(x)
    if narrow:
        r, n = _reduce32(size)
        return r, x.like(0.0), n
    top, rest, n = _fraction64(x)
    small = size < 0.7853981633974483
    r = top * _QUARTER
    low = fma(top, _QUARTER, -r) + fma(top, _QUARTER_LOW, rest * _QUARTER)
    r, low = r + low, low - ((r + low) - r)
    return select(small, size, r), select(small, 0.0, low), select(small, n.like(0), n)


def _sine(r: Scalar, low: Scalar, narrow: bool) -> tuple[Scalar, Scalar]:
    """sin(r + low) as a big and a small part."""
    z = r * r
    if narrow:
        return r, z * r * horner(z, _SIN[float32])
    return r, fma(z * r, horner(z, _SIN[float64]), fma(z * low, -0.5, low))


def _cosine(r: Scalar, low: Scalar, narrow: bool) -> tuple[Scalar, Scalar]:
    z = r * r
    if narrow:
        return fma(z, -0.5, 1.0), z * z * horner(z, _COS[float32])
    half = z * 0.5
    w = 1.0 - half
    return w, ((1.0 - w) - half) + fma(z * z, horner(z, _COS[float64]), -(r * low))


def _wave(x: Scalar, shift: int) -> Scalar:
    """sin(x + shift pi/2) for a shift of 0 or 1."""
    narrow = x.dtype is float32
    wide = x.cast(float64)
    r, low, n = _reduce(wide, narrow)
    n = n + shift
    s, t = _sine(r, low, narrow)
    c, d = _cosine(r, low, narrow)
    y = select((n & 1).ne(0), c + d, s + t).bitcast(uint64) ^ ((n & 2) << 62)
    if not shift:
        y = y ^ (wide.bitcast(uint64) & 2**63)
    return select(abs(x) < INF, y.bitcast(float64).cast(x.dtype), NAN)


def sin(x: Scalar) -> Scalar:
    return _wave(x, 0)


def cos(x: Scalar) -> Scalar:
    return _wave(x, 1)


def tan(x: Scalar) -> Scalar:
    """sin / cos, the quotient of two-part sums in float64."""
    narrow = x.dtype is float32
    wide = x.cast(float64)
    r, low, n = _reduce(wide, narrow)
    s, t = _sine(r, low, narrow)
    c, d = _cosine(r, low, narrow)
    s, t = s + t, t - ((s + t) - s)
    c, d = c + d, d - ((c + d) - c)
    odd = (n & 1).ne(0)
    top, bottom = select(odd, c, s), select(odd, s, c)
    y = top / bottom
    if not narrow:
        top_low, bottom_low = select(odd, d, t), select(odd, t, d)
        y = y + (fma(-y, bottom, top) + (top_low - y * bottom_low)) / bottom
    y = y.bitcast(uint64) ^ (n << 63) ^ (wide.bitcast(uint64) & 2**63)
    return select(abs(x) < INF, y.bitcast(float64).cast(x.dtype), NAN)
