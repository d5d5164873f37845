"""The files of docs/reference that are made of the code: `make reference` writes them."""

import json
from pathlib import Path

from forewarn.wire.fleet import file_schema
from tests import ROOT

REFERENCE = ROOT / "docs/reference"


def generated() -> dict[Path, str]:
    schema = json.dumps(file_schema(), indent=2, ensure_ascii=False)
    return {REFERENCE / "fleet-file.schema.json": f"{schema}\n"}


if __name__ == "__main__":
    for file, text in generated().items():
        file.write_text(text, encoding="utf-8")
