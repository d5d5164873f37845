"""How help is drawn: by Typer with Rich, but without what forewarn's help has none of.

Typer loads Rich's Markdown and tracebacks, and with them two parsers, before it draws any help: that takes as
long as the rest of it. Markdown is for apps that write their help in it, tracebacks for those that let Typer
draw them; forewarn does neither.
"""

import sys
from importlib import import_module
from types import ModuleType

_UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}


def load() -> None:
    """Load what draws help, with empty classes in the place of those it does not use.

    Another version of Typer may use more of them; then help is drawn with all that it loads by itself.
    """
    if "typer.rich_utils" in sys.modules:
        return
    absent = {name: _with_class(name, kind) for name, kind in _UNUSED.items() if name not in sys.modules}
    sys.modules.update(absent)
    try:
        import_module("typer.rich_utils")
    except (ImportError, AttributeError):
        sys.modules.pop("typer.rich_utils", None)
    finally:
        for name in absent:
            del sys.modules[name]


def _with_class(name: str, kind: str) -> ModuleType:
    module = ModuleType(name)
    setattr(module, kind, type(kind, (), {}))
    return module
