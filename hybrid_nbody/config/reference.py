"""The page that explains every key, made from the schema: ``python -m hybrid_nbody.run.reference``."""

import inspect
from collections.abc import Iterator, Mapping

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hybrid_nbody.config.loader import plain_values
from hybrid_nbody.config.sections import NOT_GIVEN
from hybrid_nbody.config.wording import allowed, kinds, sections, type_name
from hybrid_nbody.config.yaml_text import write_in_one_line

NBODY_EXAMPLE = """\
model: nbody
title: Plummer sphere
bodies: {kind: plummer, n: 8192}
gravity: {softening: 0.01}
time: {dt: 1e-3, end: 1.0}
output:
  directory: output/plummer
  trajectory: {every_time: 0.05}
  checkpoint: {every_steps: 500, keep: 2}
"""

FLUID_EXAMPLE = """\
model: fluid
title: Rising smoke
grid: {cells: [64, 96, 64]}
fluid: {buoyancy: 0.5}
solver: {method: multigrid, max_iterations: 10, criterion: residual, tolerance: 1e-4}
sources:
  events:
    - {steps: [0, 149], density: 1, sphere: {centre: [31.5, 8, 31.5], radius: 5}}
    - {step: 40, velocity: [0.2, 0, 0]}   # in the cell at the centre
time: {dt: 0.05, steps: 200}
output:
  directory: output/smoke
  trajectory: {every_steps: 10}
"""

EXAMPLES = {"nbody": NBODY_EXAMPLE, "fluid": FLUID_EXAMPLE}

INTRODUCTION = """\
<!-- Made from the schema by `python -m hybrid_nbody.run.reference > docs/configuration.md`; do not edit. -->

# Configuration

A run is described by one YAML file. Its `model` decides which other keys there are: [nbody](#model-nbody), gravity
between bodies, or [fluid](#model-fluid), smoke in a box. Only `model`, `bodies` or `grid`, and `time` are required;
everything else has a default.

`--set KEY=VALUE` on the command line replaces any key, for example `--set time.dt=1e-4` or
`--set 'compute.balance=[2, 1, 1]'`; it can be given several times. Of two keys that exclude each other, such as
`time.end` and `time.steps`, the one given with `--set` replaces the one in the file.

All faults of a file are reported at once, each with its place and what is allowed:

```text
input/plummer.yaml:12: time.dt: must be greater than 0 (got -0.1)
```

The file is UTF-8 text. Numbers may be written as `1e-3`, `.5` or `1000`, a whole number also as `1e3`; only `true` and
`false` are booleans; words need no quotes. Unknown and duplicate keys, anchors that are used again (`*name`) and tags
(`!name`) are refused. The resolved configuration, every default included, is stored with the output of the run.
"""


NOTES = {
    "nbody": "Units are those of the bodies: with G = 1 they are standard N-body units.",
    "fluid": """\
Cells are cubes, and the longest edge of the box is the unit of length; x, y and z are the order of every list.

Refused together: `sources.carry_over` with MacCormack advection, buoyancy or vorticity confinement; an odd number of
cells along a periodic axis; the lexicographic solver with a periodic axis or a GPU; `solver.omega` without sor; with
`criterion: residual` a tolerance below the rounding of `fluid.dtype` (1.2e-7 of float32); an event outside the grid, or
at a step that the run does not have (the last is `time.steps` - 1).""",
}


def page(models: Mapping[str, type[BaseModel]]) -> str:
    """Return the whole page as Markdown, from the root of a configuration for each value of ``model:``."""
    return "\n".join(
        [INTRODUCTION, *(line for name, model in models.items() for line in _model(name, model))]
    )


def _model(model: str, root: type[BaseModel]) -> Iterator[str]:
    """Yield the keys of a root that hold values, then each of its sections."""
    names = [name for name, field in root.model_fields.items() if sections(field.annotation)]
    yield f"## model: {model}\n\n{inspect.getdoc(root)}\n\n```yaml\n{EXAMPLES[model]}```\n\n{NOTES[model]}\n"
    yield "### Top level\n"
    yield from _table(root, "", [name for name in root.model_fields if name not in names])
    for name in names:
        yield from _section(name, root.model_fields[name])


def _section(name: str, field: FieldInfo) -> Iterator[str]:
    yield f"### {name}\n\n{field.description}\n"
    if kinds(field.annotation):
        yield f"`{name}.kind` says which; each kind has its own keys.\n\n| `{name}.kind` | Meaning |\n|---|---|"
        for kind, section in kinds(field.annotation).items():
            yield f"| `{kind}` | {section.model_fields['kind'].description} |"
        yield ""
        for kind, section in kinds(field.annotation).items():
            yield from _kind(name, kind, section)
    else:
        section = sections(field.annotation)[0]
        yield from _table(section, f"{name}.", list(section.model_fields))


def _kind(name: str, kind: str, section: type[BaseModel]) -> Iterator[str]:
    yield f"#### {name}: {kind}\n\n{' '.join(inspect.getdoc(section).split())}\n"
    keys = [key for key in section.model_fields if key != "kind"]
    if keys:
        yield from _table(section, f"{name}.", keys)
    else:
        yield "No further keys.\n"


def _table(section: type[BaseModel], prefix: str, keys: list[str]) -> Iterator[str]:
    yield "| Key | Type | Default | Allowed | Meaning |\n|---|---|---|---|---|"
    for key in keys:
        yield from _rows(prefix + key, section.model_fields[key])
    yield ""


def _rows(key: str, field: FieldInfo) -> Iterator[str]:
    """Yield the row of a key, and those of the keys below it."""
    cells = (f"`{key}`", type_name(field), _default(key, field), allowed(field), field.description)
    yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    for section in sections(field.annotation):
        for name, inner in section.model_fields.items():
            yield from _rows(f"{key}.{name}", inner)


def _default(key: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None and key.rpartition(".")[2] in NOT_GIVEN:
        return "not given"
    return f"`{write_in_one_line(plain_values(field.default))}`"
