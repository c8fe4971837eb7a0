"""``python -m hybrid_nbody``: see `hybrid_nbody.cli`."""

import sys

from hybrid_nbody.cli import main

if __name__ == "__main__":
    sys.exit(main())
