"""Find the prose of a file: docstrings, comments, strings, Markdown."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A piece of prose and the line where it starts."""

    line: int
    text: str


# A string of fewer words is a key, a name or a format.
SHORTEST_MESSAGE = 3

_COMMENT_MARKS = re.compile(r"^\s*(#+:?|//+|/\*+|\*+/?)\s?|\s*\*/\s*$", re.MULTILINE)
_LINTER_COMMENT = re.compile(r"^(noqa|type: ignore|pragma|ts-|eslint|prettier|@ts|!)")
_BLOCK_OPENINGS = {"heading_open", "paragraph_open", "th_open", "td_open"}

_JAVASCRIPT = re.compile(
    r"""
    (?P<comment> (?:^[ \t]*//[^\n]*\n?)+ | //[^\n]* | /\*.*?\*/ )
  | (?P<string> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*` )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def texts_of(path: Path) -> Iterator[Text]:
    """Yield the prose of a file, by its kind."""
    source = path.read_text()
    match path.suffix:
        case ".py":
            yield from _of_python(source)
        case ".js" | ".ts":
            yield from _of_javascript(source)
        case ".md":
            yield from _of_markdown(source)
        case _:
            yield from _of_comments(source)


def _of_python(source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    # The parts of an f-string and of a format are seen as one text, so inner constants are skipped.
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner.update(child for child in ast.walk(node) if child is not node)
            if node not in inner:
                yield from _message(node.lineno, "".join(_formatted(part) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield from _message(node.lineno, node.value)
    yield from _python_comments(source)


def _formatted(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "…"


def _message(line: int, text: str) -> Iterator[Text]:
    if len(re.findall(r"[A-Za-z]{2,}", text)) >= SHORTEST_MESSAGE:
        yield Text(line=line, text=text)


def _python_comments(source: str) -> Iterator[Text]:
    """Yield comments; lines that follow each other are one text."""
    first, last, lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        alone = token.line.lstrip().startswith("#")
        if lines and not (alone and token.start[0] == last + 1):
            yield from _comment(first, lines)
            lines = []
        first = first if lines else token.start[0]
        last = token.start[0] if alone else -1
        lines.append(token.string)
    yield from _comment(first, lines)


def _comment(line: int, lines: list[str]) -> Iterator[Text]:
    text = _COMMENT_MARKS.sub("", "\n".join(lines)).strip()
    if text and not _LINTER_COMMENT.match(text):
        yield Text(line=line, text=text)


def _of_javascript(source: str) -> Iterator[Text]:
    for found in _JAVASCRIPT.finditer(source):
        line = source.count("\n", 0, found.start()) + 1
        if found["comment"]:
            yield from _comment(line, [found["comment"]])
        else:
            yield from _message(line, re.sub(r"\$\{[^}]*\}", "…", found["string"][1:-1]))


def _of_markdown(source: str) -> Iterator[Text]:
    tokens = MarkdownIt("commonmark").enable("table").parse(source)
    for opening, inline in pairwise(tokens):
        if opening.type in _BLOCK_OPENINGS and inline.type == "inline" and inline.children:
            text = "".join(_plain(child) for child in inline.children).strip()
            if text:
                yield Text(line=(opening.map or inline.map or [0])[0] + 1, text=text)


def _plain(token: Token) -> str:
    match token.type:
        case "softbreak" | "hardbreak":
            return " "
        case "code_inline":
            return "`" + token.content.replace(" ", "_").replace(".", "_") + "`"
        case "image":
            return ""
        case _:
            return token.content


def _of_comments(source: str) -> Iterator[Text]:
    """Yield the comments of a file of another kind: TOML, shell, Makefile, CSS."""
    for found in re.finditer(r"(?:^[ \t]*#[^\n]*\n?)+|/\*.*?\*/", source, re.MULTILINE | re.DOTALL):
        yield from _comment(source.count("\n", 0, found.start()) + 1, [found[0]])
