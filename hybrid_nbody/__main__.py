"""``python -m hybrid_nbody``: see `hybrid_nbody.cli.main`."""

import sys

from hybrid_nbody.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
