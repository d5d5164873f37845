"""Tables fit the terminal: its width selects the columns, and no cell is truncated."""

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from forewarn.cli.tables import Column, block_lines, choose_widths, table_lines, table_width, wrap

MOMENT = "2026-01-05 12:00:00 UTC"
NAMES = ("a", "web-0", "a-machine-with-a-long-name", "ß漢字")

words = st.sampled_from((*NAMES, MOMENT))
cells = st.lists(words, min_size=1, max_size=6).map(", ".join)
tables = st.integers(min_value=1, max_value=4).flatmap(
    lambda rows: st.dictionaries(
        st.sampled_from(("NAME", "HOSTS", "STARTS BY", "WHY", "X")),
        st.lists(cells, min_size=rows, max_size=rows),
        min_size=1,
    )
)


def drawn(
    table: dict[str, list[str]], width: int, *, wraps: tuple[str, ...] = (), spare: tuple[str, ...] = ()
) -> list[str]:
    columns = [Column(name=name, cells=column, wraps=name in wraps) for name, column in table.items()]
    styled = {name: [Text(cell) for cell in column] for name, column in table.items()}
    widths = choose_widths(columns, width=width, spare=spare)
    lines = block_lines(styled, width) if widths is None else table_lines(styled, widths)
    return [line.plain for line in lines]


@given(table=tables, width=st.integers(min_value=40, max_value=250))
def test_lines_fit_the_terminal_and_keep_every_word(table: dict[str, list[str]], width: int) -> None:
    lines = drawn(table, width, wraps=("HOSTS", "WHY"))
    assert max(Text(line).cell_len for line in lines) <= width
    shown = " ".join(lines).replace(",", " ").split()
    wanted = " ".join(cell for column in table.values() for cell in column).replace(",", " ").split()
    assert sorted(set(wanted) - set(shown)) == []


@given(table=tables, width=st.integers(min_value=1, max_value=250))
def test_a_table_is_not_wider_than_its_terminal(table: dict[str, list[str]], width: int) -> None:
    columns = [Column(name=name, cells=column, wraps=name == "WHY") for name, column in table.items()]
    widths = choose_widths(columns, width=width, spare=("X",))
    assert widths is None or table_width(widths) <= width


ROLLOUT = {
    "WAVE": ["1", "2"],
    "HOSTS": ["host-1, host-2", "host-3"],
    "ANNOUNCED": [MOMENT, MOMENT],
    "ENDED": [f"about {MOMENT}", "-"],
    "TIMELINE": ["█" * 40, "█"],
}


def test_a_narrow_terminal_drops_columns_and_then_gets_a_vertical_table() -> None:
    def heads(width: int) -> str:
        return " ".join(drawn(ROLLOUT, width, wraps=("HOSTS",), spare=("TIMELINE",))[0].split())

    assert heads(200) == "WAVE HOSTS ANNOUNCED ENDED TIMELINE"
    assert heads(80) == heads(60) == "WAVE HOSTS ANNOUNCED ENDED"
    assert heads(30) == "WAVE 1"


def test_a_time_wraps_between_date_and_time_of_day() -> None:
    lines = drawn(ROLLOUT, 60, wraps=("HOSTS",), spare=("TIMELINE",))
    assert lines[2].split() == ["1", "host-1,", "host-2", "2026-01-05", "about", "2026-01-05"]
    assert lines[3].split() == ["12:00:00", "UTC", "12:00:00", "UTC"]


def test_a_vertical_table_has_all_columns() -> None:
    lines = drawn(ROLLOUT, 30, spare=("TIMELINE",))
    assert lines[:3] == ["WAVE       1", "HOSTS      host-1, host-2", "ANNOUNCED  2026-01-05"]
    assert lines.count("") == 1
    assert "  " + "█" * 40 in lines  # the terminal itself wraps longer lines


def test_a_word_longer_than_its_line_is_not_split() -> None:
    assert wrap("to a-long-name there", 6) == ["to", "a-long-name", "there"]
