"""Tables and lists of facts as lines of styled text, laid out for a width; no line is cut."""

from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from forewarn.cli.table_layout import GAP, count_cells, last_break, table_width, wrap

# Between the name of a fact and the fact; and where the fact begins if it has lines of its own.
FACT_GAP = 2
INDENT = "  "
CLIPPED = " …"

Fact = tuple[str, Text]


def table_lines(cells: Mapping[str, Sequence[Text]], widths: Mapping[str, int]) -> list[Text]:
    """Draw a table: its headings, a rule, and its rows, each of as many lines as its longest cell."""
    columns = list(widths)
    head = _row([Text(name) for name in columns], list(widths.values()))
    for line in head:
        line.stylize("bold")
    rule = Text("─" * table_width(widths))
    rows = zip(*(cells[name] for name in columns), strict=True)
    return [*head, rule, *(line for row in rows for line in _row(row, list(widths.values())))]


def block_lines(cells: Mapping[str, Sequence[Text]], width: int) -> list[Text]:
    """Draw what a table has too little room for: the facts of each row, and a blank line between two rows."""
    lines: list[Text] = []
    for row in zip(*cells.values(), strict=True):
        lines += [Text()] if lines else []
        lines += fact_lines(list(zip(cells, row, strict=True)), width)
    return lines


def fact_lines(facts: Sequence[Fact], width: int) -> list[Text]:
    """Draw facts, a line each or more; one with a word too wide for the room beside its name is below it."""
    names = max((count_cells(name) for name, _ in facts), default=0)
    room = width - names - FACT_GAP
    return [line for fact in facts for line in _fact(fact, names, room=room, width=width)]


def clip(line: Text, width: int) -> Text:
    """Shorten a line that is too wide between two words, and say so; a single word is cut."""
    if line.cell_len <= width:
        return line
    place = last_break(line.plain, width - len(CLIPPED))
    if place == 0:
        shortened = line.copy()
        shortened.truncate(width, overflow="ellipsis")
        return shortened
    return line[:place].append(CLIPPED)


def fold(line: Text, width: int, *, hanging: int, most: int) -> list[Text]:
    """Break a line that is too wide between words, into so many; all but the first begin further right."""
    lines: list[Text] = []
    rest = line
    while rest.cell_len > width and len(lines) < most - 1:
        place = last_break(rest.plain, width)
        if place <= hanging:  # a single word fills it
            break
        lines.append(rest[:place])
        lines[-1].rstrip()
        below = len(rest.plain) - len(rest.plain[place:].lstrip())
        rest = Text.assemble(" " * hanging, rest[below:])
    return [*lines, clip(rest, width)]


def _fact(fact: Fact, names: int, *, room: int, width: int) -> Iterable[Text]:
    name, value = fact
    said = wrap(value.plain, room)
    beside = all(count_cells(line) <= room for line in said)
    if beside:
        first, *rest = said
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
