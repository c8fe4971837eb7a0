"""Fixtures: configurations written to a file, and the messages that a faulty one gives."""

from support.config_texts import config_of, faults_of, in_folder

__all__ = ["config_of", "faults_of", "in_folder"]
