"""The configuration of a run, read from the text that its files hold."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Reads 1e-3 as a number, as people write it; PyYAML knows only 1.0e-3."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def config_of(text: str) -> dict[str, Any]:
    """Return the configuration that a text holds; empty if it holds none.

    Raises
    ------
    ValueError
        The text is not YAML.
    """
    try:
        found = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValueError("the configuration stored in it is not YAML") from error
    return found if isinstance(found, dict) else {}
