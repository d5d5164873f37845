"""Tables and lists of facts that fit the width of a terminal, as lines of styled text.

A name or a time is never cut. If the width does not suffice, a table first wraps its wide columns, then drops
columns that can be spared. It then writes times in two lines, and makes wrapped columns as narrow as their
longest word. If even that does not fit, the rows are shown vertically, with every column.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

# The space between two columns, and the least comfortable width of a wrapped column.
GAP = 3
WRAPPED = 24

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC")
# Keeps words together until they are laid out. Printable text never contains it.
_TIED = "\x00"

# The space between the name and the value of a fact, and the indent of a value below its name.
FACT_GAP = 2
INDENT = "  "
CLIPPED = " …"
Fact = tuple[str, Text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    cells: Sequence[str]
    wraps: bool = False

    @property
    def whole(self) -> int:
        """The width that shows each cell on one line."""
        return _widest(self.name, *(line for cell in self.cells for line in cell.split("\n")))

    @property
    def narrowest(self) -> int:
        """The width of the longest word."""
        return _widest(self.name, *(word for cell in self.cells for word in _words(cell)))

    @property
    def in_two_lines(self) -> int:
        """The width if each time stands below its day."""
        parts = (part for cell in self.cells for part in _MOMENT.sub("\\1\n\\2 UTC", cell).split("\n"))
        return _widest(self.name, *parts)

    @property
    def comfortable(self) -> int:
        """The width that reads well."""
        return min(self.whole, max(self.narrowest, WRAPPED)) if self.wraps else self.whole

    @property
    def timed(self) -> bool:
        """Whether the column shows times, which can take two lines each."""
        return not self.wraps and any(map(_MOMENT.search, self.cells))


def choose_widths(columns: Sequence[Column], *, width: int, spare: Sequence[str]) -> dict[str, int] | None:
    """Return the columns that fit, with their widths; None if only a vertical layout fits."""
    for widths in _choices(columns, spare=spare):
        if table_width(widths) <= width:
            return _widened(widths, columns, width=width)
    return None


def table_width(widths: Mapping[str, int]) -> int:
    """Return the width of a table with these columns."""
    return sum(widths.values()) + GAP * (len(widths) - 1)


def wrap(text: str, width: int) -> list[str]:
    """Break a text between words; a word wider than a line stays whole."""
    return [part for line in text.split("\n") for part in _broken(line, width)]


def last_break(text: str, width: int) -> int:
    """Return the place of the last word break that fits, outside times."""
    place = len(text)
    while place > 0 and (count_cells(text[:place]) > width or text[place : place + 1] not in ("", " ")):
        place = text.rfind(" ", 0, place)
    for moment in _MOMENT.finditer(text):
        if moment.start() < place < moment.end():
            return max(moment.start() - 1, 0)
    return max(place, 0)


def count_cells(text: str) -> int:
    """Return the width of a text in terminal cells."""
    from rich.cells import cell_len

    return cell_len(text)


def _choices(columns: Sequence[Column], *, spare: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield the widths to try, the most comfortable first."""
    yield {column.name: column.whole for column in columns}
    comfortable = {column.name: column.comfortable for column in columns}
    yield dict(comfortable)
    for name in spare:
        comfortable.pop(name, None)
        yield dict(comfortable)
    kept = [column for column in columns if column.name in comfortable]
    in_two_lines = comfortable | {column.name: column.in_two_lines for column in kept if column.timed}
    yield dict(in_two_lines)
    yield in_two_lines | {column.name: column.narrowest for column in kept if column.wraps}


def _widened(widths: dict[str, int], columns: Sequence[Column], *, width: int) -> dict[str, int]:
    """Give the remaining width to the wrapped columns, from the first on."""
    room = width - table_width(widths)
    for column in columns:
        if column.wraps and column.name in widths:
            more = min(column.whole - widths[column.name], room)
            widths[column.name] += more
            room -= more
    return widths


def _widest(*texts: str) -> int:
    return max(map(count_cells, texts))


def _words(text: str) -> list[str]:
    """Split a text where it may break; a moment splits into its day and its time."""
    return [word.replace(_TIED, " ") for word in _MOMENT.sub(rf"\1 \2{_TIED}UTC", text).split()]


def _broken(line: str, width: int) -> list[str]:
    if count_cells(line) <= width:
        return [line]
    lines: list[str] = []
    for word in _words(line):
        if lines and count_cells(lines[-1]) + 1 + count_cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def table_lines(cells: Mapping[str, Sequence[Text]], widths: Mapping[str, int]) -> list[Text]:
    """Draw a table: headings, a rule, and rows of one or more lines."""
    columns = list(widths)
    head = _row([Text(name) for name in columns], list(widths.values()))
    for line in head:
        line.stylize("bold")
    rule = Text("─" * table_width(widths))
    rows = zip(*(cells[name] for name in columns), strict=True)
    return [*head, rule, *(line for row in rows for line in _row(row, list(widths.values())))]


def block_lines(cells: Mapping[str, Sequence[Text]], width: int) -> list[Text]:
    """Draw each row as a list of facts, with a blank line between two rows."""
    lines: list[Text] = []
    for row in zip(*cells.values(), strict=True):
        lines += [Text()] if lines else []
        lines += fact_lines(list(zip(cells, row, strict=True)), width)
    return lines


def fact_lines(facts: Sequence[Fact], width: int) -> list[Text]:
    """Draw facts, one or more lines each; a value with a very wide word stands below its name."""
    names = max((count_cells(name) for name, _ in facts), default=0)
    room = width - names - FACT_GAP
    return [line for fact in facts for line in _fact(fact, names, room=room, width=width)]


def clip(line: Text, width: int) -> Text:
    """Shorten a line that is too wide, between words if possible, and mark that."""
    if line.cell_len <= width:
        return line
    place = last_break(line.plain, width - len(CLIPPED))
    if place == 0:
        shortened = line.copy()
        shortened.truncate(width, overflow="ellipsis")
        return shortened
    return line[:place].append(CLIPPED)


def fold_line(line: Text, width: int, *, hanging: int, most: int) -> list[Text]:
    """Break a line that is too wide into at most `most` lines, with a hanging indent."""
    lines: list[Text] = []
    rest = line
    while rest.cell_len > width and len(lines) < most - 1:
        place = last_break(rest.plain, width)
        if place <= hanging:  # a single word fills the line
            break
        lines.append(rest[:place])
        lines[-1].rstrip()
        below = len(rest.plain) - len(rest.plain[place:].lstrip())
        rest = Text.assemble(" " * hanging, rest[below:])
    return [*lines, clip(rest, width)]


def _fact(fact: Fact, names: int, *, room: int, width: int) -> Iterable[Text]:
    name, value = fact
    lines = wrap(value.plain, room)
    if all(count_cells(line) <= room for line in lines):
        first, *rest = lines
        yield Text.assemble((name, "bold"), _blanks(name, names + FACT_GAP), (first, value.style))
        indent = " " * (names + FACT_GAP)
    else:
        yield Text(name, style="bold")
        indent, rest = INDENT, wrap(value.plain, width - len(INDENT))
    for line in rest:
        yield Text.assemble(indent, (line, value.style))


def _row(cells: Sequence[Text], widths: Sequence[int]) -> list[Text]:
    wrapped = [wrap(cell.plain, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for place in range(max(map(len, wrapped))):
        line = Text()
        for cell, parts, width in zip(cells, wrapped, widths, strict=True):
            part = parts[place] if place < len(parts) else ""
            line.append(part, style=cell.style).append(_blanks(part, width + GAP))
        line.rstrip()
        lines.append(line)
    return lines


def _blanks(text: str, width: int) -> str:
    return " " * (width - count_cells(text))
