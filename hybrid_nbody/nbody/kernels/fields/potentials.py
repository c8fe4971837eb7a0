"""Static and rotating potentials as functions of scalars; formulas in units with G M as one number.

Binney & Tremaine, Galactic Dynamics (2008), sections 2.2 and 2.3; Miyamoto & Nagai, PASJ 27 (1975);
Long & Murali, ApJ 397 (1992), for the bar. These functions are compiled for CPUs and translated to
CUDA: they take numbers alone, see `hybrid_nbody.nbody.kernels.fields.translation`.
"""

import math

Numbers = tuple[float, ...]


def uniform(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return the field g = (g_x, g_y, g_z): phi = -g x."""
    x, y, z = position
    gx, gy, gz = parameters
    return gx, gy, gz, -(gx * x + gy * y + gz * z)


def plummer(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return that of a Plummer sphere (G M, b): phi = -G M / sqrt(r^2 + b^2); b = 0: a point."""
    x, y, z = position
    gm, b = parameters
    square = x * x + y * y + z * z + b * b
    inverse = 0.0
    if square > 0.0:
        inverse = 1.0 / math.sqrt(square)
    pull = -gm * inverse * inverse * inverse
    return pull * x, pull * y, pull * z, -gm * inverse


def hernquist(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return that of a Hernquist sphere (G M, a): phi = -G M / (r + a)."""
    x, y, z = position
    gm, a = parameters
    r = math.sqrt(x * x + y * y + z * z)
    pull = 0.0
    if r > 0.0:
        pull = -gm / (r * (r + a) * (r + a))
    return pull * x, pull * y, pull * z, -gm / (r + a)


def nfw(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return that of a halo of Navarro, Frenk & White (G M, a): phi = -G M ln(1 + r / a) / r.

    M = 4 pi rho a^3. Near the centre, series stand for differences of nearly equal numbers.
    """
    x, y, z = position
    gm, a = parameters
    r = math.sqrt(x * x + y * y + z * z)
    s = r / a
    pull = 0.0
    if s < 1e-3:
        depth = 1.0 - s * (1.0 / 2.0 - s * (1.0 / 3.0 - s / 4.0))
        if r > 0.0:
            pull = (
                -gm / (a * a * r) * (1.0 / 2.0 - s * (2.0 / 3.0 - s * (3.0 / 4.0 - s * 4.0 / 5.0)))
            )
    else:
        depth = math.log1p(s) / s
        pull = -gm / (r * r * r) * (math.log1p(s) - s / (1.0 + s))
    return pull * x, pull * y, pull * z, -gm / a * depth


def logarithmic(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return that of a flattened halo (v, r, q): phi = v^2 ln(r^2 + x^2 + y^2 + z^2 / q^2) / 2."""
    x, y, z = position
    v, core, q = parameters
    square = core * core + x * x + y * y + z * z / (q * q)
    pull = -v * v / square
    return pull * x, pull * y, pull * z / (q * q), v * v * math.log(square) / 2.0


def miyamoto_nagai(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return that of a disc (G M, a, b): phi = -G M / sqrt(R^2 + (a + sqrt(z^2 + b^2))^2)."""
    x, y, z = position
    gm, a, b = parameters
    height = math.sqrt(z * z + b * b)
    inverse = 1.0 / math.sqrt(x * x + y * y + (a + height) * (a + height))
    pull = -gm * inverse * inverse * inverse
    return pull * x, pull * y, pull * z * (a + height) / height, -gm * inverse


def bar(
    position: Numbers, velocity: Numbers, mass: float, time: float, parameters: Numbers
) -> Numbers:
    """Return that of a bar (G M, a, b, c, pattern speed, phase), which turns about z.

    Long & Murali's softened needle along x' of half length a: with h = b + sqrt(z^2 + c^2) and
    T+- = sqrt((a +- x')^2 + y'^2 + h^2), phi = G M / (2 a) ln((x' - a + T-) / (x' + a + T+)).
    """
    x, y, z = position
    gm, a, b, c, speed, phase = parameters
    angle = speed * time + phase
    cosine = math.cos(angle)
    sine = math.sin(angle)
    along = cosine * x + sine * y
    across = cosine * y - sine * x
    height = math.sqrt(z * z + c * c)
    h = b + height
    wide = across * across + h * h
    plus = math.sqrt((a + along) * (a + along) + wide)
    minus = math.sqrt((a - along) * (a - along) + wide)
    total = plus + minus
    pull = -gm / (2.0 * plus * minus)
    a_along = pull * 4.0 * along / total
    sideways = pull * (total - 4.0 * along * along / total) / wide
    a_across = sideways * across
    # for x' < 0 the two lengths change places, so that nothing cancels
    distance = math.fabs(along)
    near = math.sqrt((a - distance) * (a - distance) + wide)
    far = math.sqrt((a + distance) * (a + distance) + wide)
    potential = -gm / (2.0 * a) * math.log((distance + a + far) / (distance - a + near))
    return (
        cosine * a_along - sine * a_across,
        sine * a_along + cosine * a_across,
        sideways * z * h / height,
        potential,
    )
