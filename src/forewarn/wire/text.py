"""Texts of others, before they reach a line of a log, a terminal or a header."""


def on_one_line(text: str) -> str:
    """Put spaces for what would begin another line, or what a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in text)
