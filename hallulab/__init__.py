"""The front door: run experiments, read run folders, write chatbots and detectors.

Importing it loads nothing heavy. Each name of `__init__.pyi` is imported from its own module when it is first
used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
