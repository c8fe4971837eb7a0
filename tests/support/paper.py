"""A GPU on paper for the kernels of gravity: it checks arguments and has a clock of its own."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from support.gpus import H200

from hybrid_nbody.backends.base import Backend
from hybrid_nbody.backends.finite import first_bad
from hybrid_nbody.fluid.kernels.gpu.red_black import EARLY_PUSH
from hybrid_nbody.nbody.kernels.gpu.steps import MOVES
from hybrid_nbody.nbody.precision import PRECISIONS
from hybrid_nbody.parallel.transport.peer_barrier import BARRIER

MODEL = "Paper GPU"


class PaperArray(np.ndarray):
    """An array that says where it is, as CuPy's do."""

    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))

    def set(self, host, stream=None):
        """Take what the host has."""
        self[:] = host


class PaperGpu(Backend):
    """Arrays are NumPy's; nothing is computed.

    Parameters
    ----------
    seconds : callable
        Takes the name of a kernel, the macros of its module and its arguments; returns how long it
        takes.

    Attributes
    ----------
    clock : float
        Seconds that all launches so far have taken.
    launches : list of str
        Names of the kernels that were launched.
    """

    name, xp, model, description = "gpu", np, MODEL, MODEL
    identity, transports = MODEL, ("host",)
    shares_host_memory = False

    def __init__(self, seconds):
        self.seconds, self.clock, self.launches = seconds, 0.0, []

    def upload(self, host):
        return np.array(host, order="C")

    def download(self, array):
        return array.copy()

    def compile(self, source, defines, options=(), cooperative=False):
        folders = [Path(option[2:]) for option in options if option.startswith("-I")]
        return PaperModule(self, with_headers(source.read_text(), folders), defines)

    def mark(self):
        return self.clock

    def elapsed(self, start, end):
        return end - start

    def capture(self, action):
        """Return what adds the time of `action` to the clock."""
        start = self.clock
        action()
        taken, self.clock = self.clock - start, start

        def replay():
            self.clock += taken

        return replay

    def recorded(self, action):
        """Return what does `action` once, and adds its time to the clock ever after."""
        times = []

        def repeat():
            if times:
                self.clock += times[0]
                return
            start = self.clock
            action()
            times.append(self.clock - start)

        return repeat

    def facts(self):
        return {"gpu": MODEL, "multiprocessors": 132, **H200}

    def start_look(self, *arrays):
        found = [first_bad(array) for array in arrays]
        return lambda: found

    def free_memory(self):
        return 2**40

    on_host = to_host = from_host = pinned = fetch = send = wait = use = None

    def synchronize(self):
        pass


def with_headers(text, folders):
    """Return a source with the headers that it includes from some folders."""
    for folder in folders:
        for name in re.findall(r'^#include "(.+)"$', text, re.MULTILINE):
            if (folder / name).exists():
                text = text.replace(f'#include "{name}"', (folder / name).read_text())
    return text


class PaperModule:
    """A module whose kernels compare their arguments with their declaration."""

    def __init__(self, backend, text, macros):
        self.backend, self.text, self.macros = backend, text.replace("\\\n", "\n"), macros

    def get_function(self, name):
        texts = declared(self.text, name)
        named = (p.working for p in PRECISIONS.values() if p.name.upper() in self.macros)
        real = np.dtype(next(named, np.float32))  # some sources are for single precision alone

        parameters = [(kind_of(text, real), "*" in text, text) for text in texts]

        def launch(grid, block, arguments, shared_mem=0):
            assert len(arguments) == len(parameters), (name, texts)
            for argument, parameter in zip(arguments, parameters, strict=True):
                check_argument(argument, *parameter)
            self.backend.launches.append(name)
            self.backend.clock += self.backend.seconds(name, self.macros, arguments)

        return launch


KINDS = {
    "int": np.dtype("i4"),
    "unsigned": np.dtype("i4"),
    "char": np.dtype("u1"),
    "long": np.dtype("i8"),
    "double": np.dtype("f8"),
    "GridBarrier": np.dtype("u8"),
    "EarlyPush": EARLY_PUSH,
    "Moves": np.dtype(f"V{MOVES.itemsize}"),
    "Motion": np.dtype("f8"),
    "PeerBarrier": BARRIER,
    "Tree": np.dtype("u1"),
    "Key": np.dtype("u8"),
}
"""Types of arguments other than the working type."""


def declared(text, name):
    """Return the parameters of a kernel, which stands there itself or is made by a macro."""
    macro = re.search(rf"^(\w+_KERNEL)\({name},", text, re.MULTILINE)
    text, name = (
        (text[text.index(f"#define {macro[1]}(") :], r"^\s+name") if macro else (text, rf"\b{name}")
    )
    return [
        part.strip()
        for part in re.search(rf"{name}\(([^)]*)\)\s*\{{", text, re.MULTILINE)[1].split(",")
    ]


def kind_of(text, real):
    """Return the type of what a parameter is, or points to."""
    if "*const *" in text:
        return np.dtype("u8")  # addresses
    return KINDS.get(re.search(r"(\w+) ?\*?\w+$", text)[1], real)


def differ_in_sign(argument, kind):
    """Return whether of an argument and its type one is an integer without a sign."""
    return {argument.dtype.kind, kind.kind} == {"i", "u"} and argument.itemsize == kind.itemsize


def check_argument(argument, kind, pointer, text):
    """Compare what is handed over with the type that the kernel declares; called very often."""
    assert argument.dtype is kind or argument.dtype == kind or differ_in_sign(argument, kind), text
    if argument.ndim == 0:
        assert not pointer, text
        return
    assert pointer or (argument.dtype.kind == "V" and argument.shape == (1,)), text
    assert argument.flags.c_contiguous, text
