"""The page about the configuration says what the schema says."""

import subprocess
import sys
from pathlib import Path

from support.configs import loads

from hybrid_nbody.config.reference import page
from hybrid_nbody.config.wording import kinds, sections
from hybrid_nbody.running.models import MODELS

ROOT = Path(__file__).parents[2]


def test_the_page_in_the_documentation_is_up_to_date():
    made = subprocess.run(
        [sys.executable, "-m", "hybrid_nbody.running.reference"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == made.stdout, (
        "run: python -m hybrid_nbody.running.reference > docs/configuration.md"
    )


def test_every_key_and_kind_is_on_the_page():
    text = page(MODELS)
    for model in MODELS.values():
        for key, description in keys_of(model.schema):
            assert f"| `{key}` |" in text
            assert description.replace("|", "\\|") in text
    for kind in kinds(MODELS["nbody"].schema.model_fields["bodies"].annotation):
        assert f"#### bodies: {kind}\n" in text


def keys_of(section, prefix=""):
    """Yield each key that holds a value, with its description; of bodies all keys but `kind`."""
    for name, field in section.model_fields.items():
        if not sections(field.annotation) and f"{prefix}{name}" != "bodies.kind":
            yield f"{prefix}{name}", field.description
        for inner in sections(field.annotation):
            yield from keys_of(inner, f"{prefix}{name}.")


def test_the_examples_on_the_page_are_valid():
    assert loads(MODELS["nbody"].example, "example").time.total_steps == 1000
    assert loads(MODELS["fluid"].example, "example").sources.events[0].last == 149


def test_the_configuration_loads_without_the_heavy_libraries():
    heavy = {"numpy", "numba", "mpi4py", "h5py", "cupy"}
    code = f"import sys, hybrid_nbody.config.loader; print(*{heavy} & {{*sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
