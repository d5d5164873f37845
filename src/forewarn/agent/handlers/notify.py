"""`notify`: messages to people, by mail or through the webhook of a chat."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forewarn.agent.facts import checked_template, facts_of, filled
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handlers.webhook import Template, WebhookHandler, url_template
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side, Task
from forewarn.core.errors import Invalid
from forewarn.core.text_formats import on_one_line
from forewarn.wire import fields
from forewarn.wire.texts import shown

MAIL_SECONDS = 20.0
SUBJECT = {
    Side.PREPARE: "${machine}: ${type} is ${status}",
    Side.RECOVER: "${machine}: ${type} is over",
    Side.FAILED: "${machine}: preparation for ${type} failed",
    Side.HELD: "${machine}: ${type} is not approved, preparation failed",
}
TEXT = {
    Side.PREPARE: "${type} of ${resources} is ${status}, at the earliest at ${not_before} "
    "(${seconds_left} s left). ${description} Source: ${source}. Event ${id}.",
    Side.RECOVER: "${type} of ${resources} is over for ${machine}. Event ${id}.",
    Side.FAILED: "${machine} could not prepare for the ${type}: ${failure}. This does not hold the event. "
    "Event ${id}.",
    Side.HELD: "${machine} could not prepare for the ${type}: ${failure}. So it does not approve the event, "
    "which starts at ${not_before} at the earliest (${seconds_left} s left). "
    "Next: make the machine ready by hand, then run `forewarn guest approve ${id}` there.",
}


def _template(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid(f"expected a text, got {shown(value)}")
    return checked_template(value)


def _addresses(value: object) -> tuple[str, ...]:
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(_is_address(each) for each in found):
        raise Invalid(f"expected one mail address or a list of them, got {shown(value)}")
    return tuple(found)


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and "@" in value.strip("@") and " " not in value


def _server(value: object) -> tuple[str, int]:
    host, _, port = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not host or (port and not port.isdigit()):
        raise Invalid(f"expected HOST or HOST:PORT, such as mail.example.com:587, got {shown(value)}")
    return host, int(port or 25)


def _sides(value: object) -> tuple[Any, ...]:
    return tuple(fields.choice(list(Side))(each) for each in fields.sequence(value))


def _secret(value: object) -> str:
    if not isinstance(value, str):
        raise Invalid("expected a text")
    return value


_SIDE_PREFIXES = ("recover_", "failed_", "held_")
READERS = {
    "to": _addresses,
    "sender": _addresses,
    "smtp": _server,
    "starttls": fields.flag,
    "username": fields.text,
    "password": _secret,
    "url": url_template,
    "chat_field": fields.text,
    **{f"{side}{text}": _template for side in ("", *_SIDE_PREFIXES) for text in ("subject", "text")},
    "sides": _sides,
}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Create a handler that sends mail or writes to a chat."""
    by_mail, by_chat = "to" in options, "url" in options
    if by_mail == by_chat:
        raise Invalid(
            "expected either to (mail addresses) or url (a chat's webhook)" + (", got both" * by_mail)
        )
    return [Declared(does=_chat(options) if by_chat else _mail(options))]


def _texts(options: Mapping[str, Any], name: str, default: Mapping[Side, str]) -> dict[Side, str]:
    given = {side: options.get(f"{side}_{name}") for side in Side} | {Side.PREPARE: options.get(name)}
    return {side: given[side] or default[side] for side in options.get("sides", Side)}


def _chat(options: Mapping[str, Any]) -> WebhookHandler:
    field = options.get("chat_field", "text")
    texts = _texts(options, "text", TEXT)
    requests = {
        side: Template(method="POST", url=options["url"], body={field: text}) for side, text in texts.items()
    }
    return WebhookHandler(requests=requests, wording="writes to the chat at {host}")


def _mail(options: Mapping[str, Any]) -> "Mail":
    if ("username" in options) != ("password" in options):
        raise Invalid("username and password: expected both or neither")
    return Mail(
        to=options["to"],
        sender=options.get("sender", options["to"])[0],
        server=options.get("smtp", ("127.0.0.1", 25)),
        starttls=options.get("starttls", False),
        login=(options["username"], options["password"]) if "username" in options else None,
        subjects=_texts(options, "subject", SUBJECT),
        texts=_texts(options, "text", TEXT),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Sends mail."""

    to: Sequence[str]
    sender: str
    server: tuple[str, int]
    starttls: bool
    login: tuple[str, str] | None
    subjects: Mapping[Side, str]
    texts: Mapping[Side, str]

    async def prepare(self, task: Task) -> Outcome:
        """Send the mail of the task's side."""
        if task.side not in self.texts:
            return Ready()
        facts = facts_of(task)
        subject = filled(self.subjects[task.side], facts)
        return await asyncio.to_thread(self._deliver, subject, filled(self.texts[task.side], facts))

    recover = prepare

    def _deliver(self, subject: str, text: str) -> Outcome:
        import smtplib
        from email.message import EmailMessage

        message = EmailMessage()
        message["Subject"] = on_one_line(subject)
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message.set_content(text.replace("\0", ""))
        host, port = self.server
        try:
            with smtplib.SMTP(host, port, timeout=MAIL_SECONDS) as server:
                if self.starttls:
                    server.starttls()
                if self.login:
                    server.login(*self.login)
                server.send_message(message)
        except smtplib.SMTPAuthenticationError:
            return Never(f"mail server {host} does not accept the username and password")
        except smtplib.SMTPRecipientsRefused:
            return Never(f"mail server {host} does not deliver to {', '.join(self.to)}")
        except (smtplib.SMTPException, OSError) as error:
            return Again(f"mail server {host} cannot take the mail now ({type(error).__name__})")
        return Ready(f"mail to {', '.join(self.to)}")

    def describe(self, side: Side) -> str:
        """Describe the recipients."""
        return f"sends mail to {', '.join(self.to)} by {self.server[0]}" if side in self.texts else ""

    def problems(self) -> Sequence[str]:
        """Return no problems."""
        return ()
