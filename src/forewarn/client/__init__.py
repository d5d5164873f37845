"""The typed client of the operator API, for the command line, rehearsals and tests.

    from forewarn.client.calls import OperatorClient
    from forewarn.wire.answers.fleet_answers import MachineAnswer
    from forewarn.wire.answers.order_answers import OrderOnMachineAnswer

    client = OperatorClient("http://127.0.0.1:8170", token="fw_…")
    machine = client.get("/v1/machines/web-0", MachineAnswer).value   # a MachineAnswer
    spot = client.all(MachineAnswer, group="batch").value.items       # a tuple of them, all pages
    reply = client.post("/v1/machines/web-0/restart", OrderOnMachineAnswer, {"reason": "wedged"})
    reply.value.order.state, reply.json                               # as a value, and as the server sent it

Each call names the type of its answer (`forewarn.wire.answers`), so a new endpoint needs no code here. Errors
of the server raise `RequestRefused` with its message and status. If there is no server, a call raises
`ServerUnreachable`, or `OutcomeUnknown` if the request may still have an effect. Keys and words of a later
version are ignored; a missing key raises `AnswerNotUnderstood`. `AsyncOperatorClient` is the same client for
asyncio.

Every POST has an `Idempotency-Key`, so the server executes it once. The client retries it a few times when
the connection breaks or the server asks for a pause. A call with a key of the caller's own (`key=`) is not
retried.
"""
