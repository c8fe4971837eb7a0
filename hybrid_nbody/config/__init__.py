"""Configurations in YAML: sections, and the loader that finds every fault with its line."""
