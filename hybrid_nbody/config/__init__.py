"""What a user writes in YAML: the schema, and the loader that reports every fault with file and line."""
