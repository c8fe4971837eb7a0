"""The machine code of CUDA kernels, read with nvdisasm, which needs no GPU either."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = r"MUFU\.RSQ"
"""An interaction takes one reciprocal root: in float32 the root itself, in float64
(``MUFU.RSQ64H``) a first guess."""

FLOAT64 = r"D(ADD|MUL|FMA|SETP|MNMX)\b"
LOCAL_MEMORY = r"(LD|ST)L\b"
"""Registers that did not suffice, or an array that is indexed by a variable."""


@dataclass(frozen=True)
class Loop:
    """The instructions that one round of a loop goes through, those of loops within it left out."""

    instructions: tuple[str, ...]

    def count(self, pattern: str) -> int:
        """Return how many instructions have a name that begins with a regular expression."""
        return sum(bool(re.match(pattern, instruction)) for instruction in self.instructions)

    def per_interaction(self, pattern: str = "") -> float:
        """Return how many such instructions an interaction takes."""
        return self.count(pattern) / self.count(ROOT)


def pair_loops(cubin: bytes) -> dict[str, Loop]:
    """Return for each kernel that takes roots the loop over sources: the one that takes most of
    them in a round, the longest if there are several.
    """
    found = {}
    for kernel, lines in _kernels(_disassembled(cubin)).items():
        loop = max(
            _loops(lines),
            key=lambda loop: (loop.count(ROOT), len(loop.instructions)),
            default=Loop(()),
        )
        if loop.count(ROOT):
            found[kernel] = loop
    return found


def instructions_of(cubin, kernel):
    """Return the instructions of a kernel, without predicates."""
    return _parsed(_kernels(_disassembled(cubin))[kernel])[0]


def _nvdisasm() -> str:
    """Return the path of the program in the distribution of that name."""
    files = metadata.files("nvidia-cuda-nvdisasm") or []
    return str(next(file.locate() for file in files if file.name == "nvdisasm"))


def _disassembled(cubin):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(cubin)
        return subprocess.run(
            [_nvdisasm(), "-c", path], capture_output=True, text=True, check=True, timeout=60
        ).stdout


def _kernels(text):
    """Return the lines of each kernel's code section."""
    parts = re.split(r"^\s*\.section\s+(\S+?),.*$", text, flags=re.MULTILINE)
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return {
        name.removeprefix(".text."): body.splitlines()
        for name, body in sections
        if name.startswith(".text.")
    }


def _loops(lines):
    """Return the loops of a kernel, each from a label to the last jump back to it.

    What stands behind the last EXIT takes care of lanes that come late, and jumps back to where
    they are waited for.
    """
    instructions, labels = _parsed(lines)
    last = max(
        (index for index, instruction in enumerate(instructions) if instruction == "EXIT"),
        default=0,
    )
    ends = {}
    for index, instruction in enumerate(instructions[:last]):
        target = re.match(r"BRA\S* .*`\((\S+)\)", instruction)
        if target and labels.get(target[1], index + 1) <= index:
            ends[labels[target[1]]] = index + 1
    return [Loop(tuple(instructions[index] for index in _own(start, ends))) for start in ends]


def _parsed(lines):
    """Return the instructions, without predicates, and the index of each label among them."""
    instructions, labels = [], {}
    for line in lines:
        if label := re.match(r"\s*(\.L\w+):", line):
            labels[label[1]] = len(instructions)
        elif code := re.match(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([^;]+?)\s*;", line):
            instructions.append(code[1])
    return instructions, labels


def _own(start, ends):
    """Return the indices of a loop's instructions that belong to no loop within it."""
    inner = [
        range(other, end) for other, end in ends.items() if other > start and end <= ends[start]
    ]
    return [
        index for index in range(start, ends[start]) if not any(index in loop for loop in inner)
    ]
