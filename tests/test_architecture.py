"""The architecture: layers, the size of files, paths, and the commands that documents show."""

import contextlib
import io
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_nbody.cli import main as cli
from hybrid_nbody.cli.arguments import NAMES
from hybrid_nbody.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("hybrid_nbody", "tests", "run_scripts", "input", "docs", ".ci")
SOURCES = {".py", ".cu", ".cuh", ".sh"}
TEXTS = SOURCES | {".md", ".yaml", ".cfg", ".toml"}
MOST_LINES = 400


def files(*suffixes):
    """Return the files of the folders and of the root that end in one of the suffixes."""
    everywhere = [
        *ROOT.glob("*"),
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")),
    ]
    return [path for path in everywhere if path.is_file() and path.suffix in suffixes]


def found(pattern, paths):
    """Return the lines, as file:line: text, in which a pattern is found."""
    lines = (
        (path, n, line)
        for path in paths
        for n, line in enumerate(path.read_text().splitlines(), start=1)
    )
    return [
        f"{path.relative_to(ROOT)}:{n}: {line.strip()}"
        for path, n, line in lines
        if re.search(pattern, line)
    ]


# ---- Layers, sizes, paths ------------------------------------------------------------------------


def test_layers_are_kept(monkeypatch, capsys):
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == 0, capsys.readouterr().out


def test_files_are_short():
    too_long = {
        str(path): count
        for path in files(*SOURCES)
        if (count := len(path.read_text().splitlines())) > MOST_LINES
    }
    assert not too_long


def test_no_path_of_one_machine():
    one_machine = r"(?<![\w.~$}])/(home|root|Users|work|scratch|mnt|data)/\w"
    assert found(one_machine, files(*TEXTS) + [ROOT / "Dockerfile"]) == []


def test_cupy_is_imported_by_the_gpu_backend_alone():
    """Import-linter sees import statements; this sees `importlib` too."""
    package = [path for path in files(".py") if path.is_relative_to(ROOT / "hybrid_nbody")]
    others = [path for path in package if path != ROOT / "hybrid_nbody" / "backends" / "gpu.py"]
    assert found(r"^\s*(import|from) cupy\b|(import_module|__import__)\(.cupy", others) == []


def test_cuda_sources_are_packaged():
    """A .cu file outside a package would be missing from an installation."""
    assert [
        path for path in files(".cu", ".cuh") if not (path.parent / "__init__.py").exists()
    ] == []


def test_the_script_of_the_pictures_says_how_it_is_used():
    command = [sys.executable, "docs/pictures.py", "--help"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: pictures.py ")


# ---- The commands that documents show ------------------------------------------------------------


def commands(document):
    """Yield the shell commands of a document's code blocks, each as a list of words."""
    for block in re.findall(
        r"^```(?:sh|bash|shell|console)\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL
    ):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|\||[|;]", re.sub(r"^\$ ", "", line.strip())):
                words = shlex.split(part, comments=True)
                if words:
                    yield words


def fault_of(words):
    """Return what is wrong with a command, or None."""
    while words and re.fullmatch(r"\w+=.*", words[0]):  # NAME=value in front of a command
        words = words[1:]
    if not words:  # nothing but settings
        return None
    program, *rest = words
    if program in ("mpirun", "srun"):
        return fault_of(
            list(itertools.dropwhile(lambda word: word not in PROGRAMS_ON_RANKS, rest))
            or ["nothing"]
        )
    if program in ("python", "python3") and rest[:2] == ["-m", "hybrid_nbody"]:
        return fault_of_ours(rest[2:])
    if program == "hybrid-nbody":
        return fault_of_ours(rest)
    if program.startswith(("./", "run_scripts/")) or program == "sbatch":
        return fault_of_script(rest if program == "sbatch" else words)
    return (
        None
        if program in KNOWN_PROGRAMS
        else f"unknown program {program}: add it here if it is right"
    )


PROGRAMS_ON_RANKS = {"python", "python3", "hybrid-nbody"}
KNOWN_PROGRAMS = {
    "cd",
    "docker",
    "export",
    "git",
    "jupyter",
    "lint-imports",
    "mypy",
    "pip",
    "pytest",
    "python",
    "ruff",
    "sphinx-build",
    "source",
}


def fault_of_script(words):
    script = next((word for word in words if word.endswith((".sh", "/run"))), None)
    if script is None or not (ROOT / script).is_file():
        return f"no such script: {words}"
    return None if (ROOT / script).stat().st_mode & 0o100 else f"{script} is not executable"


def fault_of_ours(arguments):
    """Ask the program's own parser what is wrong with a command, and look for its input files."""
    name = next(iter(arguments), "")
    if not name.startswith("-") and name not in NAMES:
        if not name.endswith(".yaml"):
            return f"no such command: {name}"
        arguments = ["run", *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            cli.parse(arguments)
        except InputError as error:
            return str(error)
        except SystemExit as ended:  # --help
            assert not ended.code
    missing = [
        word for word in arguments if word.startswith("input/") and not (ROOT / word).exists()
    ]
    return f"missing file: {missing}" if missing else None


DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")),
]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_in_documents_exist(name):
    shown = list(commands(ROOT / name))
    faults = {shlex.join(words): fault for words in shown if (fault := fault_of(words))}
    assert faults == {}
    assert shown or name.startswith("docs/"), "no command was found: is the test blind?"


@pytest.mark.parametrize(
    "command",
    [
        "./run_scripts/missing.sh",
        "mpirun -n 2 python -m hybrid_nbody input/missing.yaml",
        "python -m hybrid_nbody run input/plummer.yaml --no-such-option",
        "hybrid-nbody no-such-command",
        "hybrid-nbody bench no-such-benchmark",
        "hybrid-nbody bench ladder --no-such-option",
        "hybrid-nbody export output/plummer --format gadget",
        "conjure a result",
    ],
)
def test_wrong_commands_are_found(command):
    assert fault_of(shlex.split(command))
