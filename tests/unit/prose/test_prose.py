from pathlib import Path

import pytest

from tests.prose.rules import findings, sentences, word_count
from tests.prose.texts import texts_of


def found_in(text: str) -> list[str]:
    return [finding.found for sentence in sentences(text) for finding in findings(sentence)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The server retries the commit.", []),
        ("It is written anew.", ["anew"]),
        ("Nobody reads it.", ["Nobody"]),
        ("What the server knows.", ["What"]),
        ("What does the server know?", []),
        ("The server starts. Whose clock it uses is a setting.", ["Whose"]),
        ("Two machines, one of which is stopped, are told.", ["of which", "are told"]),
        ("- The first.\n- Those that follow.", ["Those"]),
        ("Recommend the host", []),
        ("Whatever the driver answers, the step ends.", []),
    ],
)
def test_telltales_and_openings_are_found(text: str, found: list[str]) -> None:
    assert found_in(text) == found


def test_a_sentence_ends_before_a_capital_and_not_within_a_name() -> None:
    assert list(sentences("See api.py for it. The agent e.g. waits. `serve` starts it. (It does.)")) == [
        "See api.py for it.",
        "The agent e.g. waits.",
        "`serve` starts it.",
        "It does.",
    ]


def test_words_are_counted_without_marks() -> None:
    assert word_count("One, two \u2013 three `four_five` and 6.") == 6


SOURCES = {
    "a.py": (
        '''"""Say it once.

Then stop."""
x = 1  # A comment
# of one line
# and another
# noqa: F401
key = "event-id"
error = f"event {key} is not known here"
''',
        [
            "Say it once.\n\nThen stop.",
            "A comment",
            "of one line\nand another\nnoqa: F401",
            "event … is not known here",
        ],
    ),
    "a.js": (
        """// One comment
// of two lines
const text = `${name} is not known here`; /* and another */
const key = "event-id";
""",
        ["One comment\nof two lines", "… is not known here", "and another"],
    ),
    "a.md": (
        """# A heading

A *paragraph* of
two lines with `code here`.

| a | table cell |
|---|---|
| b | c |

```sh
what is not prose
```
""",
        ["A heading", "A paragraph of two lines with `code_here`.", "a", "table cell", "b", "c"],
    ),
    "a.toml": ("# A comment\nkey = 1\n", ["A comment"]),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_prose_of_each_kind_of_file_is_read(name: str, tmp_path: Path) -> None:
    source, texts = SOURCES[name]
    (tmp_path / name).write_text(source)
    assert sorted(text.text for text in texts_of(tmp_path / name)) == sorted(texts)
