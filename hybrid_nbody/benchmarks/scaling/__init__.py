"""Both models on more and more ranks."""
