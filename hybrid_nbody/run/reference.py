"""Prints the page that explains every key: ``python -m hybrid_nbody.run.reference > docs/configuration.md``."""

from hybrid_nbody.config.reference import page
from hybrid_nbody.run.models import MODELS

if __name__ == "__main__":
    print(page(MODELS), end="")
