"""Tables fit their terminal: columns are chosen by its width, and nothing of what is shown is cut."""

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
def test_no_line_passes_the_terminal_and_no_word_is_cut(table: dict[str, list[str]], width: int) -> None:
    lines = drawn(table, width, wraps=("HOSTS", "WHY"))
    assert max(Text(line).cell_len for line in lines) <= width
    shown = " ".join(lines).replace(",", " ").split()
    wanted = " ".join(cell for column in table.values() for cell in column).replace(",", " ").split()
    assert sorted(set(wanted) - set(shown)) == []


@given(table=tables, width=st.integers(min_value=1, max_value=250))
def test_a_chosen_table_is_as_wide_as_its_terminal_at_most(table: dict[str, list[str]], width: int) -> None:
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


def test_columns_give_way_by_width_and_then_the_table_does() -> None:
    def heads(width: int) -> str:
        return " ".join(drawn(ROLLOUT, width, wraps=("HOSTS",), spare=("TIMELINE",))[0].split())

    assert heads(200) == "WAVE HOSTS ANNOUNCED ENDED TIMELINE"
    assert heads(80) == heads(60) == "WAVE HOSTS ANNOUNCED ENDED"
    assert heads(30) == "WAVE 1"


def test_a_time_stands_in_two_lines_rather_than_be_cut() -> None:
    lines = drawn(ROLLOUT, 60, wraps=("HOSTS",), spare=("TIMELINE",))
    assert lines[2].split() == ["1", "host-1,", "host-2", "2026-01-05", "about", "2026-01-05"]
    assert lines[3].split() == ["12:00:00", "UTC", "12:00:00", "UTC"]


def test_a_vertical_table_has_every_column_also_those_that_can_be_spared() -> None:
    lines = drawn(ROLLOUT, 30, spare=("TIMELINE",))
    assert lines[:3] == ["WAVE       1", "HOSTS      host-1, host-2", "ANNOUNCED  2026-01-05"]
    assert lines.count("") == 1
    assert "  " + "█" * 40 in lines  # the terminal itself breaks what is wider than it is


def test_a_word_that_is_wider_than_its_line_stays_whole() -> None:
    assert wrap("to a-long-name there", 6) == ["to", "a-long-name", "there"]
