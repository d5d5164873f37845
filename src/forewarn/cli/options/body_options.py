"""What is sent to the API, made of options: a command takes the body, and its user types the options."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

BODY = "body"

Command = Callable[..., None]


def with_body(
    make: Callable[..., dict[str, Any]], options: Iterable[inspect.Parameter]
) -> Callable[[Command], Command]:
    """Put options in the place of a command's argument `body`, which is made of them."""
    shared = list(options)

    def decorate(function: Command) -> Command:
        def command(session: object, **given: Any) -> None:
            typed = {each.name: given.pop(each.name) for each in shared}
            function(session, **given, **{BODY: make(**typed)})

        own = list(inspect.signature(function).parameters.values())
        index = [each.name for each in own].index(BODY)
        own[index : index + 1] = shared
        # Typer reads a command's options from its signature.
        command.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return command

    return decorate
