"""The recipe that notifies an administrator: by mail over SMTP, and in a chat over HTTP."""

import re
from email import message_from_string, policy
from pathlib import Path

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Over
from tests.helpers.programs.agent_program import serving
from tests.helpers.programs.mail_server import mail_server
from tests.helpers.programs.process import until
from tests.helpers.programs.receiver import receiving
from tests.helpers.programs.recipe_agents import agent_with, installed, rehearsed


def test_an_administrator_gets_mail_when_an_event_is_announced_and_when_it_is_over(tmp_path: Path) -> None:
    with (
        mail_server() as mail,
        serving(tmp_path) as service,
        agent_with(
            "notify", service=service, machine="web-0", folder=tmp_path, places={"127.0.0.1:25": mail.place}
        ) as agent,
    ):
        event = service.post("/v1/machines/web-0/redeploy")["event"]
        agent.wait_for(Ended, side=Side.PREPARE)
        # The agent does not approve, so the event does not start before its NotBefore.
        service.advance(599)
        assert service.get(f"/v1/events/{event['id']}")["event"]["status"] == "Scheduled"
        service.advance(900)
        agent.wait_for(Over)
        assert not any(isinstance(entry, Approved) for entry in agent.entries())
    coming, over = (message_from_string(text, policy=policy.default) for text in mail.mails)
    assert (coming["To"], coming["Subject"]) == ("root@localhost", "web-0: Redeploy is Scheduled")
    told = " ".join(coming.get_content().split())
    assert "Redeploy of web-0 is Scheduled, at the earliest at 2" in told
    assert event["id"] in told
    assert over["Subject"] == "web-0: Redeploy is over"


def test_the_commented_handler_posts_to_a_chat(tmp_path: Path) -> None:
    with receiving() as chat, mail_server() as mail, serving(tmp_path) as service:
        (tmp_path / "chat-url").write_text(f"{chat.url}\n")
        places = {"127.0.0.1:25": mail.place}
        # Like a user, remove the comment signs from the handler's lines.
        lines = installed("notify", tmp_path, **places).partition("# [[handlers]]")
        wanted = lines[0] + re.sub(r"^# ?", "", lines[1] + lines[2], flags=re.MULTILINE)
        agent = agent_with("notify", service=service, machine="web-0", folder=tmp_path, places=places)
        agent.configure(wanted)
        with agent:
            service.post("/v1/machines/web-0/redeploy")
            until(lambda: chat.taken, what="the message in the chat")
            assert chat.taken[0]["text"].startswith("Redeploy of web-0 is Scheduled")
            agent.wait_for(Ended, side=Side.PREPARE, handler="chat")
            assert len(mail.mails) == 1
            assert chat.url not in agent.out.text


def test_the_rehearsal_of_the_readme_succeeds(tmp_path: Path) -> None:
    with mail_server() as mail:
        rehearsed("notify", tmp_path, {"127.0.0.1:25": mail.place})
        assert len(mail.mails) == 4
