"""Prints the page on the configuration: ``python -m hybrid_nbody.running.reference``.

Its output is ``docs/configuration.md``.
"""

from hybrid_nbody.config.reference import page
from hybrid_nbody.running.models import MODELS

if __name__ == "__main__":
    print(page(MODELS), end="")
