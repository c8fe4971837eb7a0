"""The pair force: ``reference`` is the truth; ``cpu`` and ``gpu`` are twins tested against it."""
