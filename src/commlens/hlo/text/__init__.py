"""The text backend: modules that are bytes with an index."""

from commlens.hlo.text.module import TextModule, read_modules

__all__ = ["TextModule", "read_modules"]
