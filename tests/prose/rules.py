"""Split texts into sentences, and find those to rewrite: telltale words, openings that are not questions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST_SENTENCE = 30  # words; the aim is 25


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text().splitlines()


# Words and phrases that make readers read twice.
TELLTALES = re.compile(rf"\b({'|'.join(_lines('telltales.txt'))})\b", re.IGNORECASE)

# A statement that opens with a pronoun hides the actor.
OPENINGS = re.compile(rf"({'|'.join(_lines('openings.txt'))})\b")

_QUOTES = "\"'\u201c\u201d\u2018\u2019"
_SENTENCE_END = re.compile(
    rf"(?<=[.!?])[)*_{_QUOTES}]*\s+(?=[({_QUOTES}]?(?:[A-Z0-9`\u2026]|forewarn\b))|\n\s*\n|\n\s*(?=[-*]\s)"
)
_MARKS_BEFORE = re.compile(rf"^[\s(*_>{_QUOTES}-]+")
_MARKS_BEHIND = re.compile(rf"[\s)*_{_QUOTES}]+$")
_WORD = re.compile(r"[A-Za-z0-9`]\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A place to rewrite, with its sentence."""

    found: str
    sentence: str


def sentences(text: str) -> Iterator[str]:
    """Split a text into sentences."""
    for piece in _SENTENCE_END.split(text):
        sentence = _MARKS_BEHIND.sub("", _MARKS_BEFORE.sub("", " ".join(piece.split())))
        if sentence:
            yield sentence


def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(_WORD.findall(text))


def findings(sentence: str) -> Iterator[Finding]:
    """Yield the telltale words of a sentence, and its opening."""
    telltales = [found[0] for found in TELLTALES.finditer(sentence)]
    opening = OPENINGS.match(sentence)
    if opening and not sentence.endswith("?") and not TELLTALES.match(sentence):
        telltales.append(opening[0])
    for found in telltales:
        yield Finding(found=found, sentence=sentence)
