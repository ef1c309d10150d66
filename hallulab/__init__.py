"""The front door: run experiments, read run folders, write chatbots and detectors.

Importing it loads nothing heavy. Each name of `__init__.pyi` is imported from its own module when it is first
used.
"""

import sys

import lazy_loader

if sys.platform == "win32":
    sys.exit("error: hallulab does not run on Windows: install and start it in WSL, or on Linux.")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
