"""The page that explains every key, made from the schemas of the models."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hybrid_nbody.config.checking import ConfiguredModel
from hybrid_nbody.config.loader import plain_values
from hybrid_nbody.config.sections import exclusive_keys
from hybrid_nbody.config.wording import allowed, kinds, sections, type_name
from hybrid_nbody.config.yaml_text import write_in_one_line

INTRODUCTION = """\
<!-- Made by `python -m hybrid_nbody.running.reference > docs/configuration.md`; do not edit. -->

# Configuration

A run is described by one YAML file. Its `model` decides which other keys there are:
MODELS.
A few keys are required, as the tables say; everything else has a default.

`--set KEY=VALUE` on the command line replaces any key, for example `--set time.dt=1e-4` or
`--set 'compute.balance=[2, 1, 1]'`; it can be given several times. Of two keys that exclude each
other, such as `time.end` and `time.steps`, the one given with `--set` replaces the one in the file.

All faults of a file are reported at once, each with its location and what is allowed:

```text
input/plummer.yaml:12: time.dt: must be greater than 0 (got -0.1)
```

The file is UTF-8 text. Numbers may be written as `1e-3`, `.5` or `1000`, a whole number also as
`1e3`; only `true` and `false` are booleans; words need no quotes. Unknown and duplicate keys,
aliases (`*name`) and tags (`!name`) are refused. The resolved configuration, every default
included, is stored with the output of the run.
"""


class DocumentedModel(ConfiguredModel, Protocol):
    """The part of a model's contract that the page needs.

    Attributes
    ----------
    summary : str
        What it simulates, in a few words.
    example, notes : str
        A configuration, and Markdown that stands below it.
    """

    @property
    def summary(self) -> str:
        """See the class."""

    @property
    def example(self) -> str:
        """See the class."""

    @property
    def notes(self) -> str:
        """See the class."""


def page(models: Mapping[str, DocumentedModel]) -> str:
    """Return the whole page as Markdown, from the models for each value of ``model:``."""
    known = [f"[{name}](#model-{name}), {model.summary}" for name, model in models.items()]
    introduction = INTRODUCTION.replace("MODELS", ", or ".join(known))
    sections_of_models = (line for name, model in models.items() for line in _model(name, model))
    return "\n".join([introduction, *sections_of_models])


def _model(name: str, model: DocumentedModel) -> Iterator[str]:
    """Yield the keys of a root that hold values, then each of its sections."""
    root = model.schema
    names = [key for key, field in root.model_fields.items() if sections(field.annotation)]
    yield f"## model: {name}\n\n{inspect.getdoc(root)}\n"
    yield f"```yaml\n{model.example}```\n\n{model.notes}\n"
    yield "### Top level\n"
    yield from _table(root, "", [key for key in root.model_fields if key not in names])
    for section in names:
        yield from _section(section, root.model_fields[section])


def _section(name: str, field: FieldInfo) -> Iterator[str]:
    yield f"### {name}\n\n{field.description}\n"
    known = kinds(field.annotation)
    if known:
        yield from _known_kinds(name, known)
        shared = _shared_keys(known)
        if shared:
            yield "Every kind has these keys as well:\n"
            yield from _table(next(iter(known.values())), f"{name}.", shared)
        for kind, section in known.items():
            yield from _kind(name, kind, section, shared)
    else:
        section = sections(field.annotation)[0]
        yield from _table(section, f"{name}.", list(section.model_fields))


def _known_kinds(name: str, known: Mapping[str, type[BaseModel]]) -> Iterator[str]:
    yield f"`{name}.kind` says which; each kind has its own keys.\n"
    yield f"| `{name}.kind` | Meaning |\n|---|---|"
    for kind, section in known.items():
        yield f"| `{kind}` | {section.model_fields['kind'].description} |"
    yield ""


def _shared_keys(known: Mapping[str, type[BaseModel]]) -> list[str]:
    """Return the keys but `kind` that mean the same in every kind."""
    first, *others = known.values()
    return [
        key
        for key, field in first.model_fields.items()
        if all(
            key in other.model_fields and other.model_fields[key].description == field.description
            for other in others
        )
    ]


def _kind(name: str, kind: str, section: type[BaseModel], shared: Sequence[str]) -> Iterator[str]:
    yield f"#### {name}: {kind}\n\n{' '.join((inspect.getdoc(section) or '').split())}\n"
    keys = [key for key in section.model_fields if key != "kind" and key not in shared]
    if keys:
        yield from _table(section, f"{name}.", keys)
    else:
        yield "No further keys.\n"


def _table(section: type[BaseModel], prefix: str, keys: list[str]) -> Iterator[str]:
    yield "| Key | Type | Default | Allowed | Meaning |\n|---|---|---|---|---|"
    for key in keys:
        yield from _rows(prefix, key, section)
    yield ""


def _rows(prefix: str, key: str, section: type[BaseModel]) -> Iterator[str]:
    """Yield the row of a key of a section, and those of the keys below it."""
    field = section.model_fields[key]
    name = f"{prefix}{key}"
    default = _default(field, optional=key in exclusive_keys(section))
    cells = (f"`{name}`", type_name(field), default, allowed(field), field.description or "")
    yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    for inner in sections(field.annotation):
        for inner_key in inner.model_fields:
            yield from _rows(f"{name}.", inner_key, inner)


def _default(field: FieldInfo, optional: bool) -> str:
    if field.is_required():
        return "required"
    if isinstance(field.json_schema_extra, dict):
        return str(field.json_schema_extra["default"])
    if field.default is None and optional:
        return "not given"
    return f"`{write_in_one_line(plain_values(field.default))}`"
