"""The typed client of the operator API, for the command line, rehearsals and tests.

    from forewarn.client.calls import OperatorClient
    from forewarn.wire.answers.fleet_answers import MachineAnswer
    from forewarn.wire.answers.order_answers import OrderOnMachineAnswer

    client = OperatorClient("http://127.0.0.1:8170", token="fw_…")
    machine = client.get("/v1/machines/web-0", MachineAnswer).value   # a MachineAnswer
    spot = client.all(MachineAnswer, group="batch").value.items       # a tuple of them, all pages
    reply = client.post("/v1/machines/web-0/restart", OrderOnMachineAnswer, {"reason": "wedged"})
    reply.value.order.state, reply.json                               # as a value, and as the server sent it

A call names the answer it expects (`forewarn.wire.answers`), so a new endpoint needs nothing here. What the
server refuses is a `RequestRefused` with its message and status; no server is `ServerUnreachable`, and
`OutcomeUnknown` if it was sent something that may still happen. Keys and words of a later version are passed
over and kept as they are; a key that is missing is `AnswerNotUnderstood`.
`AsyncOperatorClient` is the same on an event loop.

Every POST has an `Idempotency-Key`, so that the server does it once: it is sent again by itself, a few times,
when the connection breaks or the server asks for a little patience. One that is given a key of the caller's
own (`key=`) is sent once, and the caller may send it again.
"""
