"""How the server logs: set up at start, and again when it reads its settings anew."""

import logging
import sys

from forewarn.config import Settings

FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_log(settings: Settings) -> None:
    """Log as is set, instead of as before; can be called at any time."""
    logging.basicConfig(level=logging.INFO, format=FORM, stream=sys.stderr, force=True)
    for chatty in ("alembic", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # It warns of each request that cannot be read, and strangers could fill the log with them.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
