"""`forewarn driver`: show who can do work."""

from forewarn.cli import terminal
from forewarn.cli.session import Noun, Session
from forewarn.wire.answers.fleet_answers import DriverAnswer

app = Noun()

LIST = terminal.ItemTable[DriverAnswer](
    columns={
        "DRIVER": lambda driver: driver.name,
        "KIND": lambda driver: driver.kind or "",
        "HOSTS": lambda driver: driver.hosts,
        "INSTALLED": lambda driver: _installed(driver),
    }
)


def _installed(driver: DriverAnswer) -> str:
    if driver.installed:
        return "yes"
    waits = "what it has to do waits" if driver.hosts or driver.why is None else ""
    return f"no: {'; '.join(filter(None, (driver.why, waits)))}"


@app.command("list")
def list_(session: Session) -> None:
    """List the drivers that hosts and orders can name."""
    session.print_reply(session.client.page(DriverAnswer), lambda page: LIST.print(page.items))
