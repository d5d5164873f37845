"""The searches: all states at small constants, many at the real ones, mutants and situations."""

from tests.model.spin import Search

# The permitted actions, with the bits of fleet.pml.
MAINTENANCE, DEGRADE, FAIL, SERVICE, DEFER, HOLD, CRASH, MOVE, TIME = (1 << bit for bit in range(9))
EVERYTHING = 511

# The asserted rules, with the bits of rules.pml.
RULES = {1: 1, 4: 2, 5: 4, 11: 8}


def _allowed(what: int) -> str:
    return f"-DALLOWED={what}"


EXHAUSTIVE = (
    Search(name="everything, two orders", defines=("-DORDERS=2",), arguments=("-m100000",)),
    Search(
        name="maintenance and degrade, any number of orders",
        defines=(_allowed(MAINTENANCE | DEGRADE | DEFER | HOLD | CRASH | TIME),),
        arguments=("-m1000000",),
    ),
    Search(
        name="evacuations, any number of orders, no deferrals",
        defines=(_allowed(SERVICE | MOVE | CRASH | TIME),),
        arguments=("-m1000000",),
    ),
)


def _live(name: str, orders: int, allowed: int, *defines: str, expected: bool = False) -> Search:
    """Return a search for runs in which an event waits forever for its start."""
    return Search(
        name=name,
        defines=("-DLIVE", f"-DORDERS={orders}", _allowed(allowed), *defines),
        arguments=("-m1000000",),
        expected=expected,
        live=True,
    )


# People place this many orders, and may approve any events at any time, or none.
LIVE = (
    _live("maintenance and degrade, two orders, with deferrals", 2, MAINTENANCE | DEGRADE | DEFER | TIME),
    _live("maintenance and degrade, three orders", 3, MAINTENANCE | DEGRADE | TIME),
    _live("with evacuations, two orders", 2, MAINTENANCE | DEGRADE | SERVICE | DEFER | MOVE | TIME),
)
# Before approvals armed whole stages, two hosts could wait for each other forever.
LIVELOCK = _live(
    "an approval arms its event alone", 2, DEGRADE | TIME, "-DMUTANT_4_SINGLY", "-DPRINTED", expected=True
)

# The most steps of Spin in one action: the choice, its subject, and its effect.
STEPS = 3

# Bit-state hashing: 2^22 bits are enough for some millions of states.
_BITS = ("-O2", "-DBITSTATE", "-DT_RAND")

# Depth and seed: one goes wide near the beginning, the others follow long histories.
BOUNDED = tuple(
    Search(
        name=f"{times}, {depth:,} actions deep, seed {seed}",
        defines=defines,
        compiled=_BITS,
        arguments=(f"-m{depth * STEPS}", f"-RS{seed}", "-w22"),
    )
    for times, defines, depth, seed in (
        ("everything, real times", ("-DREAL",), 30, 1),
        ("everything, real times", ("-DREAL",), 200, 2),
        ("everything, real times", ("-DREAL",), 2000, 3),
        ("everything, small times", (), 2000, 4),
    )
)

# The name of each mutant in engine.pml, its permitted actions, and its fault.
MUTANTS = (
    ("1_EARLY", EVERYTHING, "an event starts a tick before its NotBefore"),
    ("1_SHORT", EVERYTHING, "notice is a tick shorter than the minimum"),
    ("4_TIMES_ALONE", MAINTENANCE | DEGRADE, "only events of the same time keep each other away"),
    ("4_ARMED_BESIDE", MAINTENANCE | DEGRADE | TIME, "arming is not refused"),
    ("4_SINGLY", DEGRADE | TIME, "an approval arms its event alone"),
    ("4_UNARMED", MAINTENANCE | DEGRADE | TIME, "an approved event starts unarmed"),
    ("4_FORGOTTEN", MAINTENANCE | CRASH | TIME, "arming is not saved: a crash forgets it"),
    ("5_ANY", MAINTENANCE | DEGRADE | TIME, "one approval starts the whole stage"),
    ("5_HALF", MAINTENANCE | DEGRADE | TIME, "an approved event starts without its stage"),
    (
        "5_HOST_EARLY",
        MAINTENANCE | SERVICE | MOVE | TIME,
        "work on a host starts before all its events",
    ),
    ("11_LATE", MAINTENANCE | HOLD | TIME, "nothing is withdrawn"),
)

# Look for the shortest run, because people read it.
_SHORTEST = (f"-m{12 * STEPS}", "-i")


def mutant(name: str, allowed: int) -> Search:
    """Return the search that must catch a mutant with the assertions of its own rule."""
    rule = RULES[int(name.partition("_")[0])]
    return Search(
        name=name,
        defines=(f"-DMUTANT_{name}", _allowed(allowed), f"-DRULES={rule}", "-DPRINTED"),
        compiled=("-O1", "-DREACH"),
        arguments=_SHORTEST,
        expected=True,
    )


# Situations that searches must reach to prove anything, with the numbers of rules.pml.
SITUATIONS = {
    1: "arming is refused, and NotBefore moves",
    2: "an event is withdrawn and announced again",
    3: "the second stage of an order starts",
    4: "an approved event starts long before its NotBefore",
    5: "work on a host starts while a machine stays there",
    6: "a machine waits for a slot to leave its host",
    7: "a host fails while an update domain is armed",
    8: "two degraded hosts are announced to one group together",
}


def situation(number: int) -> Search:
    """Return the search that must reach a situation."""
    return Search(
        name=SITUATIONS[number],
        defines=(f"-DWITNESS={number}", "-DORDERS=2"),
        compiled=("-O1",),
        arguments=(f"-m{100 * STEPS}",),
        expected=True,
    )
