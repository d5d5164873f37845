"""`forewarn driver`: show who can do work."""

from forewarn.cli import terminal
from forewarn.cli.session import Noun, Session
from forewarn.wire.answers.fleet_answers import DriverAnswer

app = Noun()

LIST = terminal.ItemTable[DriverAnswer](
    columns={
        "DRIVER": lambda driver: driver.name,
        "HOSTS": lambda driver: driver.hosts,
        "INSTALLED": lambda driver: "yes" if driver.installed else "no: what it has to do waits",
    }
)


@app.command("list")
def list_(session: Session) -> None:
    """List the drivers that hosts and orders can name."""
    session.print_reply(session.client.page(DriverAnswer), lambda page: LIST.print(page.items))
