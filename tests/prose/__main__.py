"""Print how each part of the project reads, and fail if one reads badly: `python -m tests.prose [PART …]`.

With the names of parts, every finding of these parts is listed, whether or not the part passes.
"""

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.prose.rules import LONGEST_SENTENCE, Finding, findings, sentences, word_count
from tests.prose.texts import texts_of

ROOT = Path(__file__).parents[2]
ALLOWED = Path(__file__).with_name("allowed.toml")

# The level of well-written projects of this field: Starlette, HTTPX and SQLAlchemy have 0.0 to 0.1.
MOST_TELLTALES = 0.5  # in a thousand words
MOST_LONG_SENTENCES = 5.0  # in a hundred

KINDS = {".py", ".js", ".ts", ".md", ".css", ".toml", ".sh", ".service"}
SKIPPED = {"__pycache__", "generated", "node_modules", "fixtures"}


@dataclass(kw_only=True)
class Part:
    """A part of the project, with what was counted in it."""

    name: str
    words: int = 0
    sentences: int = 0
    long: list[tuple[str, str]] = field(default_factory=list)
    found: list[tuple[str, Finding]] = field(default_factory=list)

    @property
    def is_document(self) -> bool:
        """Whether the length of sentences counts."""
        return self.name.startswith("docs") or self.name.endswith(".md")

    @property
    def telltales(self) -> float:
        """How many findings there are in a thousand words."""
        return 1000 * len(self.found) / max(1, self.words)

    @property
    def long_share(self) -> float:
        """How many of a hundred sentences are too long."""
        return 100 * len(self.long) / max(1, self.sentences)

    @property
    def reads_well(self) -> bool:
        """Whether the part passes."""
        too_long = self.is_document and self.long_share >= MOST_LONG_SENTENCES
        return self.telltales < MOST_TELLTALES and not too_long


def files() -> Iterator[tuple[str, Path]]:
    """Yield each file that has prose, with the name of its part."""
    for path in sorted(ROOT.glob("*.md")):
        yield path.name, path
    for top in ("src/forewarn", "tests", "docs", "bench", "examples", "packaging"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in KINDS and path.is_file() and not SKIPPED & set(path.parts):
                yield _part_of(path.relative_to(ROOT)), path


def _part_of(path: Path) -> str:
    folders = path.parts[:-1]
    depth = {"src": 3, "tests": 2, "docs": 2}.get(folders[0], 1)
    return "/".join(folders[:depth])


def read_parts() -> list[Part]:
    """Read every file, and count."""
    allowed = {(row["path"], row["sentence"]) for row in tomllib.loads(ALLOWED.read_text())["allowed"]}
    parts: dict[str, Part] = {}
    for name, path in files():
        part = parts.setdefault(name, Part(name=name))
        short = str(path.relative_to(ROOT))
        for text in texts_of(path):
            part.words += word_count(text.text)
            for sentence in sentences(text.text):
                part.sentences += 1
                if word_count(sentence) > LONGEST_SENTENCE:
                    part.long.append((f"{short}:{text.line}", sentence))
                if (short, sentence) not in allowed:
                    part.found += [(f"{short}:{text.line}", finding) for finding in findings(sentence)]
    return list(parts.values())


def main(names: list[str]) -> int:
    """Print a row for each part and the findings of those that fail."""
    parts = read_parts()
    unknown = set(names) - {part.name for part in parts}
    if unknown:
        print(f"No such part: {', '.join(sorted(unknown))}. Parts: {', '.join(part.name for part in parts)}.")
        return 2
    chosen = [part for part in parts if part.name in names] if names else parts
    print(f"{'part':24} {'words':>7} {'telltales':>9} {'per 1,000':>9} {'sentences over 30 words':>24}")
    for part in chosen:
        counts = f"{part.words:7,} {len(part.found):9} {part.telltales:9.2f} {part.long_share:22.1f} %"
        print(f"{part.name:24} {counts}  {'' if part.reads_well else '<- rewrite'}".rstrip())
    for part in chosen:
        if part.name in names or not part.reads_well:
            _print_findings(part)
    return 0 if all(part.reads_well for part in chosen) else 1


def _print_findings(part: Part) -> None:
    for where, finding in part.found:
        print(f"{where}: {finding.found!r} in: {finding.sentence[:160]}")
    if part.is_document:
        for where, sentence in part.long:
            print(f"{where}: {word_count(sentence)} words: {sentence[:160]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
