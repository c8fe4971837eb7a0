"""Configurations of the models that the program has."""

from functools import partial

from hybrid_nbody.config import loader
from hybrid_nbody.running.models import MODELS

load = partial(loader.load, models=MODELS)
loads = partial(loader.loads, models=MODELS)
