"""`forewarn promises`: what became of the notice that machines were promised."""

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import option
from forewarn.cli.session import Session, command
from forewarn.wire.answers.promise_answers import PromiseAnswer

COLUMNS = {
    "MONTH": lambda each: each.month,
    "PROJECT": lambda each: each.project,
    "MACHINES": lambda each: each.judged,
    "KEPT": lambda each: each.kept,
    "LATE": lambda each: each.late,
    "NEVER": lambda each: each.never,
    "BROKEN": lambda each: each.broken,
    "UNANNOUNCED": lambda each: each.unannounced,
    "WORK": lambda each: "simulated" if each.simulated else "real",
}


@command(option("--month", "MONTH", "Only of this month, in UTC, as 2026-11."))
def promises(session: Session, month: str | None) -> None:
    """Count by project and month whose notice was kept, late or never got, and what else befell them."""
    wanted = {"month": month, **session.scope}
    none = "No promises: nothing that was announced has started and ended yet."
    table = terminal.ItemTable[PromiseAnswer](
        columns=COLUMNS,
        spare_if_same=("PROJECT",),
        empty=formatting.none_found("promises", none, **wanted),
    )
    session.print_reply(session.client.all(PromiseAnswer, **wanted), lambda page: table.print(page.items))
