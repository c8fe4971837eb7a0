"""A configuration that is written and read again is the same configuration."""

from hypothesis import given
from hypothesis import strategies as st
from support.configs import loads

from hybrid_nbody.config.loader import dump
from hybrid_nbody.nbody.config import NBodyConfig

positive = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
not_negative = st.floats(min_value=0, allow_infinity=False)
counts = st.integers(1, 10**9)
# Words that YAML readers take for something else, and any character that a line of text may hold.
lines = st.sampled_from(
    ["1e3", "off", "null", "~", "010", "1:30", "#", "2001-01-01", " a: b", "-", "'", "é 𝒞"]
) | st.text(
    st.characters(
        blacklist_categories=("Cc", "Cs", "Zl", "Zp"), blacklist_characters="\ufeff\ufffe\uffff"
    )
)
names = lines.filter(lambda text: text.strip() and not text.startswith("~"))


def mappings(**keys):
    """Return mappings in which each key may be missing, so that defaults are met as well."""
    return st.fixed_dictionaries({}, optional=keys)


def every(**keys):
    """Return how often something is written: never, each so many steps, or each so much time."""
    steps, time = mappings(**keys), mappings(**keys)
    return (
        st.none()
        | st.builds(lambda given, n: {**given, "every_steps": n}, steps, counts)
        | st.builds(lambda given, t: {**given, "every_time": t}, time, positive)
    )


what = {
    "fields": st.sampled_from([["position"], ["velocity"], ["velocity", "position"]]),
    "precision": st.sampled_from(["float32", "float64"]),
}
frames = every(**what, every_body=counts) | every(**what, ids=st.just([0]))

shares = st.floats(0, 1, exclude_min=True, exclude_max=True)
vectors = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
placement = {"seed": st.none() | st.integers(0, 2**70)}
placement |= {"rotation": vectors, "offset": vectors, "velocity": vectors}


def kind(name, required=None, **optional):
    return st.fixed_dictionaries(
        {"kind": st.just(name), **(required or {})}, optional=optional | placement
    )


bodies = st.one_of(
    kind("plummer", {"n": counts}, mass=positive, scale=positive),
    kind(
        "uniform-sphere", {"n": counts}, mass=positive, radius=positive, virial_ratio=not_negative
    ),
    kind("cold-sphere", {"n": counts}, mass=positive, radius=positive),
    kind("random-box", {"n": counts}, half_width=positive, mass=positive),
    kind(
        "two-body",
        masses=st.lists(positive, min_size=2, max_size=2),
        semi_major_axis=positive,
        eccentricity=st.floats(0, 1, exclude_max=True),
    ),
    kind("figure-eight"),
    kind("lagrange-triangle", side=positive, mass=positive),
    kind("random-square", {"n": counts}, dimensions=st.just(2)),
    kind("hernquist", {"n": counts}, mass=positive, scale=positive),
    kind("nfw", {"n": counts}, concentration=st.floats(1, 1000)),
    kind("king", {"n": counts}, central_potential=st.floats(0.1, 15)),
    kind("galaxy", {"n": st.integers(2, 10**9)}, disc_mass=shares, disc_bodies=shares),
    kind("binaries", {"n": st.just(4), "semi_major_axes": st.just([1, 2])}),
    kind("solar-system"),
    kind("python", {"path": names, "n": counts}, function=lines),
    kind("file", {"path": names}, dimensions=st.sampled_from([2, 3])),
)
several = st.lists(bodies, min_size=1, max_size=3)
hermite = st.fixed_dictionaries({"integrator": st.just("hermite4"), "accuracy": st.floats(1e-3, 1)})
time = st.builds(
    lambda section, dt, end: {**section, "dt": dt, **end},
    hermite
    | mappings(
        integrator=st.sampled_from(["leapfrog", "yoshida4", "euler"]),
        wall_limit=st.none() | positive | st.sampled_from(["2h30m", "1d", "90s"]),
        max_energy_error=st.none() | positive,
    ),
    st.floats(1e-6, 1e6),
    st.fixed_dictionaries({"end": st.floats(1e-6, 1e6)})
    | st.fixed_dictionaries({"steps": st.integers(1, 10**15)}),
)
sections = {
    "title": lines,
    "seed": st.integers(0, 2**70),
    "gravity": mappings(
        G=positive,
        softening=not_negative,
        precision=st.sampled_from(["single", "mixed", "double"]),
    ),
    "stop": st.lists(
        st.sampled_from(["escape", "closest"])
        .flatmap(lambda key: mappings(**{key: positive}))
        .filter(bool),
        max_size=2,
    ),
    "activity_map": st.none() | st.fixed_dictionaries({"cells": st.integers(1, 4096)}),
    "compute": st.fixed_dictionaries({"backend": st.just("hybrid"), "cpu_share": st.floats(0, 1)})
    | mappings(
        backend=st.sampled_from(["auto", "cpu", "gpu", "hybrid"])
        | st.lists(st.sampled_from(["cpu", "gpu", "hybrid"]), min_size=1),
        threads=st.just("auto") | st.integers(1, 1024),
        balance=st.sampled_from(["auto", "equal", "measured"])
        | st.lists(st.floats(0.1, 1e6), min_size=1),
        transport=st.sampled_from(["auto", "host", "nccl"]),
    ),
    "output": mappings(
        directory=names, trajectory=frames, diagnostics=every(), checkpoint=every(keep=counts)
    ),
}
configs = st.fixed_dictionaries(
    {"model": st.just("nbody"), "bodies": bodies | several, "time": time}, optional=sections
)


@given(configs)
def test_a_configuration_survives_being_written_and_read(values):
    config = NBodyConfig.model_validate(values)
    text = dump(config)
    assert loads(text, "config.yaml") == config
    assert dump(loads(text, "config.yaml")) == text


def test_every_default_is_written_out(config_of):
    assert (
        dump(config_of("title: 1 body\ntime: {dt: 0.5, steps: 3}\noutput: {diagnostics: null}"))
        == """\
model: nbody
title: 1 body
units: null
seed: 1
bodies:
  kind: plummer
  name: ''
  seed: null
  rotation: [0.0, 0.0, 0.0]
  offset: [0.0, 0.0, 0.0]
  velocity: [0.0, 0.0, 0.0]
  n: 8
  mass: 1.0
  scale: 0.5890486225480862
centred: false
gravity: {G: 1.0, softening: 0.0, solver: direct, precision: mixed, external: null, \
accuracy: 0.0001}
time: {dt: 0.5, steps: 3, wall_limit: null, integrator: leapfrog, accuracy: 0.01, \
max_energy_error: 0.1}
stop: []
activity_map: null
compute: {backend: auto, threads: auto, balance: auto, transport: auto, cpu_share: auto, \
exchange: auto}
output:
  directory: output/run
  trajectory:
    every_steps: 100
    fields: [position, velocity]
    precision: float64
  diagnostics: null
  checkpoint: {every_steps: 500, keep: 2}
"""
    )
