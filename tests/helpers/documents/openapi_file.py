"""The OpenAPI document as a file. `make check` generates the console's types from it."""

import json
import sys
from pathlib import Path

from forewarn.api.app import ENDPOINTS
from forewarn.api.openapi import document


def write(path: Path) -> None:
    """Write the document, unless the file is current."""
    text = json.dumps(document(ENDPOINTS), ensure_ascii=False, indent=1)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
