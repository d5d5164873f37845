"""`forewarn project`: show the tenants, and what they have declared."""

from typing import Annotated, Any

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import quoted_name
from forewarn.cli.options.shared_options import name_argument
from forewarn.cli.session import Session, noun, with_session
from forewarn.core.moments import format_span_briefly

app = noun("Show the tenants, and when maintenance may disturb them.")

ProjectArgument = Annotated[str, name_argument("PROJECT")]

LIST = terminal.TableLayout(
    columns=("PROJECT", "REHEARSAL", "TIME ZONE", "WINDOWS", "BLACKOUT"), wraps=("WINDOWS", "BLACKOUT")
)

GUESTS = terminal.TableLayout(columns=("MACHINE", "POLLS", "SPOILED", "MEETS"))


@app.command("list")
@with_session
def list_(session: Session) -> None:
    """List projects."""
    answer = session.client.all("projects")
    rows = (_row(each) for each in answer["projects"])
    session.print_answer(answer, lambda: terminal.table(LIST, rows, empty="No projects."))


@app.command()
@with_session
def show(session: Session, name: ProjectArgument) -> None:
    """Show a project."""
    answer = session.client.get(f"/v1/projects/{quoted_name('project', name)}")
    shown = zip(
        ("name", "rehearsal", "time zone", "windows", "blackout"), _row(answer["project"]), strict=True
    )
    session.print_answer(answer, lambda: terminal.details(shown))


@app.command()
@with_session
def rehearsal(
    session: Session,
    name: ProjectArgument,
    end: Annotated[bool, typer.Option("--end", help="End it: guests are answered as ever again.")] = False,
) -> None:
    """Show what is rehearsed in a project: who plays it, what guests meet, and what they did."""
    path = f"/v1/projects/{quoted_name('project', name)}/rehearsal"
    answer = session.client.call("DELETE" if end else "GET", path)
    session.print_answer(answer, lambda: _show_rehearsal(answer["rehearsal"], answer.get("called_off")))


def _show_rehearsal(shown: dict[str, Any], called_off: list[str] | None) -> None:
    if called_off is not None:
        orders = f" Called off: {formatting.listing(called_off)}." if called_off else ""
        terminal.echo(f"Ended. All guests are answered as ever.{orders}")
    faults = [_fault(each) for each in shown["faults"]]
    terminal.details(
        [
            ("scenario", shown["scenario"]),
            ("by", shown["by"]),
            ("since", formatting.at(shown["begun_at"])),
            ("faults", faults),
        ]
    )
    rows = (_guest(each) for each in shown["guests"])
    terminal.table(GUESTS, rows, empty="No guests.")


def _guest(guest: dict[str, Any]) -> tuple[object, ...]:
    return (guest["machine"], guest["polls"], guest["spoiled"], guest["meets"])


def _fault(fault: dict[str, Any]) -> str:
    whose = f" for {', '.join(fault['machines'])}" if fault["machines"] else ""
    return f"{fault['kind']}{whose}{' (on now)' if fault['on'] else ''}"


def _row(project: dict[str, Any]) -> tuple[object, ...]:
    windows = [_window(each) for each in project["windows"]]
    return (project["name"], project["rehearsal"], project["time_zone"], windows, project["blackout"])


def _window(window: dict[str, Any]) -> str:
    return f"{' '.join(window['days'])} {window['start']} for {format_span_briefly(window['length'])}"
