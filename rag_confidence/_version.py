"""The version of the package, in a leaf so that artefacts can name it."""

__version__ = "0.1.0"
