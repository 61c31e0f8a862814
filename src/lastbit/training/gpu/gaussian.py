"""Rounded Gaussian noise on a CUDA device: bits, binary64, and a mark on each draw not yet certain.

Law      block b of ChaCha20 (key of the call, counter b, nonce 0) gives eight words of 64 bits and
         four points; words u, v give the point (A, B) or, if the first bit of v is 1, (B, A), with
         A = +-R cos(pi S/4), the sign of the second bit of v, B = R sin(pi S/4), S in [-1, 1) by
         the other bits of v, and R = sigma sqrt(-2 ln U), U = 0.u. U and S have further bits, which
         nobody has drawn yet. Both are uniform, so the point is sigma times a normal one
         (Box and Muller 1958: its direction is uniform, the four signs and the change of places
         being the symmetries of the square)
Theorem  where the mark is 0, the number stored is round(A) or round(B) for *every* choice of the
         further bits
Proof    u = 2**-53, e = 2**-k with 2**k sqrt(1/2) <= float(u) < 2**k sqrt(2). Every operation below
         is one rounding of IEEE 754 binary64 to nearest; nothing under- or overflows.
         (L) -ln U is within (1+3u) u L + (LOG_ERROR + u + 2u**2) + sqrt(2) e (1+3u) of L, minus
         the logarithm computed: polynomial, combination and the words' rounding, the further bits.
         (X) x = -n = fl(q L), q a float within relative d of 2 sigma**2. Unless it is marked, U is
         in 2**-52 .. 1 - 2**-39; so that sum is below 2**-11 L, and the radius, the root of
         2 sigma**2 (-ln U), is within 1+2**-10 times
         r ((d + 2u)/2 + u) + sigma**2 (LOG_ERROR + u + sqrt(2) e)/r
         of r, the root computed: |sqrt(a) - sqrt(b)| = |a - b|/(sqrt(a) + sqrt(b)), and the root
         is within (1+2**-20) u r of sqrt(x). `half` is 1/(2r) up to 2**-30.
         (C) cosine and sine are within TURN_ERROR times themselves, and 2**-61 for the further
         bits. So the product is within |c| reach + r 2**-60, with
         reach = r FIRST + half (SECOND + THIRD e), whose constants `constants_of` rounds up by more
         than all that is left out here.
         r and s have the other sign in the source, which changes no rounding.
         (K) k = round(r c) is found by adding and subtracting 3 2**51: some whole number, right or
         not; t = fma(r, c, -k) is within 2**-54 of r c - k, which is in -1..1. If
         fl(|t| + error) < 1/2 then |t| + error < 1/2, as rounding is monotone and 1/2 a float.  []
         The constants are proved by intervals, for the very source below:
         tests/training/gpu/test_proof.py
Source   ChaCha20: Bernstein 2008, RFC 8439. The prototype's pitfalls: Triton makes Python's floats
         binary32, so constants are made by `_real`; and fuses products and sums unless told not to,
         though here no sum has a product for a term
Differs  no division, no library function; no float argument: floats travel as bit patterns
Checked  tests/training/gpu/: in Triton's interpreter on a CPU against Arb, draw by draw
"""

from __future__ import annotations

import triton
import triton.language as tl

ROUNDS = tl.constexpr(20)


@triton.jit
def _real(value: tl.constexpr):
    return tl.full([], value, tl.float64)


@triton.jit
def log_of(f):
    """ln(1 + f) for f in sqrt(1/2)-1 .. sqrt(2)-1: f - f**2/2 + f**3 P(f)."""
    p = tl.fma(f, _real(0.025121012977506962), _real(-0.058587808254017))
    p = tl.fma(p, f, _real(0.06498543009640753))
    p = tl.fma(p, f, _real(-0.057222375847583676))
    p = tl.fma(p, f, _real(0.05679871507203169))
    p = tl.fma(p, f, _real(-0.0619016977427029))
    p = tl.fma(p, f, _real(0.0668213341513565))
    p = tl.fma(p, f, _real(-0.07149929347082198))
    p = tl.fma(p, f, _real(0.0769177817611011))
    p = tl.fma(p, f, _real(-0.08332893884438529))
    p = tl.fma(p, f, _real(0.09090909762823171))
    p = tl.fma(p, f, _real(-0.10000015584666233))
    p = tl.fma(p, f, _real(0.11111111619693755))
    p = tl.fma(p, f, _real(-0.1249999968971384))
    p = tl.fma(p, f, _real(0.14285714271218605))
    p = tl.fma(p, f, _real(-0.1666666666979173))
    p = tl.fma(p, f, _real(0.20000000000150067))
    p = tl.fma(p, f, _real(-0.24999999999988237))
    p = tl.fma(p, f, _real(0.3333333333333286))
    p = tl.fma(p, f, _real(-0.5))
    return tl.fma(f * f, p, f)


@triton.jit
def log_with(k, log):
    """The sum of k ln 2 and log, k a whole number as a float: ln 2 is the sum of two floats."""
    low = tl.fma(k, _real(2.3190468138462996e-17), log)
    return tl.fma(k, _real(0.6931471805599453), low)


@triton.jit
def rough_root(n, y):
    """With n = -x, and y near 1/sqrt(x), up to 4 %: -sqrt(x) and 1/(2 sqrt(x)), up to 2**-30.

    A negative root needs no operation that changes a sign.
    """
    h = tl.fma(n * y, y, _real(1.0))
    p = tl.fma(h, _real(0.3125), _real(0.375))
    p = tl.fma(p, h, _real(0.5))
    y = tl.fma(y * h, p, y)
    g = n * y
    h = tl.fma(g, y, _real(1.0)) * _real(0.5)
    return tl.fma(g, h, g), tl.fma(y, h, y) * _real(0.5)


@triton.jit
def better_root(n, g, half):
    """-sqrt(-n), rounded once but for 2**-20 of the last place."""
    return tl.fma(tl.fma(g, g, n), half, g)


@triton.jit
def sine_of(s, z):
    """sin(pi s/4) for s in -1..1, z = s**2."""
    p = tl.fma(z, _real(6.877942587008505e-12), _real(-1.7571520342058286e-09))
    p = tl.fma(p, z, _real(3.133616250934244e-07))
    p = tl.fma(p, z, _real(-3.65762041605163e-05))
    p = tl.fma(p, z, _real(0.0024903945701893367))
    p = tl.fma(p, z, _real(-0.0807455121882806))
    p = tl.fma(p, z, _real(3.061616997868383e-17))
    return tl.fma(s, _real(0.7853981633974483), s * p)


@triton.jit
def cosine_of(z):
    """cos(pi s/4) for z = s**2 in 0..1."""
    p = tl.fma(z, _real(-3.8484270080732646e-13), _real(1.1500156658316058e-10))
    p = tl.fma(p, z, _real(-2.4611358913297727e-08))
    p = tl.fma(p, z, _real(3.590860442335798e-06))
    p = tl.fma(p, z, _real(-0.00032599188692535697))
    p = tl.fma(p, z, _real(0.015854344243815172))
    p = tl.fma(p, z, _real(-0.30842513753404244))
    return tl.fma(p, z, _real(1.0))


@triton.jit
def radius(u, square, first, second, third):
    """-R of a word, how far a product with it may be off, and whether U is too near an end."""
    bits = u.to(tl.float64).to(tl.int64, bitcast=True)
    # 2**k sqrt(1/2) <= the float < 2**k sqrt(2): the exponent after a shift of the mantissa
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = (bits - (k << 52)).to(tl.float64, bitcast=True) - _real(1.0)
    # a small whole number becomes a float by way of the last bits of 3 * 2**51
    count = (k + (0x4338000000000000 - 64)).to(tl.float64, bitcast=True) - _real(6755399441055744.0)
    n = log_with(count, log_of(f)) * square
    # the famous first guess of 1/sqrt(x), 2**62 less for the sign that n has
    start = 0x1FE6EB50C7B537A9 - (n.to(tl.int64, bitcast=True) >> 1)
    g, half = rough_root(n, start.to(tl.float64, bitcast=True))
    r = better_root(n, g, half)
    tail = ((1023 - k) << 52).to(tl.float64, bitcast=True)
    reach = tl.fma(r, first, half * tl.fma(tail, third, second))
    end = (u < 0x1000) | (u > 0xFFFFFFFFFE000000)
    return r, reach, end


@triton.jit
def rounded(r, c, reach, rest, narrow: tl.constexpr):
    """round(r c), and whether that is certain."""
    big = tl.fma(r, c, _real(6755399441055744.0))
    off = tl.fma(r, c, _real(6755399441055744.0) - big)
    sure = tl.abs(off) + tl.fma(tl.abs(c), reach, rest) < _real(0.5)
    bits = big.to(tl.int64, bitcast=True)
    k = bits.to(tl.int32) if narrow else bits - 0x4338000000000000
    return k, sure


@triton.jit
def point(a, b, c, d, square, first, second, third, narrow: tl.constexpr):
    """Two numbers of four words of 32 bits, each 0 where it is not certain, and if it is not."""
    u = (a.to(tl.uint64) << 32) | b.to(tl.uint64)
    v = (c.to(tl.uint64) << 32) | d.to(tl.uint64)
    r, reach, end = radius(u, square, first, second, third)
    # -S, as the radius is negative too
    s = (v << 2).to(tl.int64, bitcast=True).to(tl.float64) * _real(-1.0842021724855044e-19)
    z = s * s
    rest = tl.fma(r, _real(-8.673617379884035e-19), _real(1.1102230246251565e-16))
    major, major_sure = rounded(r, cosine_of(z), reach, rest, narrow)
    minor, minor_sure = rounded(r, sine_of(s, z), reach, rest, narrow)
    major_sure = major_sure & (end == 0)
    minor_sure = minor_sure & (end == 0)
    major = tl.where(major_sure, major, 0)
    minor = tl.where(minor_sure, minor, 0)
    major = tl.where((c & 0x40000000) != 0, major, -major)
    change = (c & 0x80000000) != 0
    major_open = (major_sure == 0).to(tl.int32)
    minor_open = (minor_sure == 0).to(tl.int32)
    return (
        tl.where(change, minor, major),
        tl.where(change, major, minor),
        tl.where(change, minor_open | (major_open << 1), major_open | (minor_open << 1)),
    )


@triton.jit
def _turn(x, n: tl.constexpr):
    return (x << n) | (x >> (32 - n))


@triton.jit
def _quarter(a, b, c, d):
    a = a + b
    d = _turn(d ^ a, 16)
    c = c + d
    b = _turn(b ^ c, 12)
    a = a + b
    d = _turn(d ^ a, 8)
    c = c + d
    b = _turn(b ^ c, 7)
    return a, b, c, d


@triton.jit
def chacha(lane, k0, k1, k2, k3, k4, k5, k6, k7):
    """Block `lane` of the key's stream, as sixteen words of 32 bits; the nonce is 0."""
    zero = (lane * 0).to(tl.uint32)
    s0 = zero + 0x61707865
    s1 = zero + 0x3320646E
    s2 = zero + 0x79622D32
    s3 = zero + 0x6B206574
    s4 = zero + k0.to(tl.uint32)
    s5 = zero + k1.to(tl.uint32)
    s6 = zero + k2.to(tl.uint32)
    s7 = zero + k3.to(tl.uint32)
    s8 = zero + k4.to(tl.uint32)
    s9 = zero + k5.to(tl.uint32)
    s10 = zero + k6.to(tl.uint32)
    s11 = zero + k7.to(tl.uint32)
    s12 = lane.to(tl.uint32)
    x0, x1, x2, x3 = s0, s1, s2, s3
    x4, x5, x6, x7 = s4, s5, s6, s7
    x8, x9, x10, x11 = s8, s9, s10, s11
    x12, x13, x14, x15 = s12, zero, zero, zero
    for _ in tl.static_range(ROUNDS // 2):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    return (
        (x0 + s0, x1 + s1, x2 + s2, x3 + s3),
        (x4 + s4, x5 + s5, x6 + s6, x7 + s7),
        (x8 + s8, x9 + s9, x10 + s10, x11 + s11),
        (x12 + s12, x13, x14, x15),
    )


@triton.jit
def _add(sums, at, count, number):
    """Add a number in place."""
    here = at < count
    number = number.to(tl.int64) + tl.load(sums + at, mask=here, other=0)
    tl.store(sums + at, number, mask=here)


_VARYING = (
    "count", "lanes", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
    "square", "first", "second", "third",
)  # fmt: skip


# not specialized: else a key of another shape, say with a word of 1, would be compiled again
@triton.jit(do_not_specialize=_VARYING)
def noise(
    sums, marks, count, lanes,
    k0, k1, k2, k3, k4, k5, k6, k7,
    square, first, second, third,
    narrow: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Draw j of lane b is added to number b + j lanes of `sums`; its mark is bit j of byte b.

    `count` and `lanes` are below 2**30, so that places fit int32; `narrow`, if draws do.
    """
    square = square.to(tl.int64).to(tl.float64, bitcast=True)
    first = first.to(tl.int64).to(tl.float64, bitcast=True)
    second = second.to(tl.int64).to(tl.float64, bitcast=True)
    third = third.to(tl.int64).to(tl.float64, bitcast=True)
    lane = tl.program_id(0) * block + tl.arange(0, block)
    real = lane < lanes
    four = chacha(lane, k0, k1, k2, k3, k4, k5, k6, k7)
    mark = lane * 0
    at = tl.where(real, lane, count)
    for i in tl.static_range(4):
        a, b, c, d = four[i]
        one, two, unsure = point(a, b, c, d, square, first, second, third, narrow)
        _add(sums, at, count, one)
        _add(sums, at + lanes, count, two)
        mark |= unsure << (2 * i)
        at += 2 * lanes
    tl.store(marks + lane, mark.to(tl.uint8), mask=real)


def is_interpreted() -> bool:
    """Whether TRITON_INTERPRET=1 was set when this file was imported: kernels run on a CPU."""
    return not isinstance(noise, triton.runtime.JITFunction)
