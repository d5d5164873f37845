"""Two tenants in one fleet, and a token of every kind."""

from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import GroupKind, GroupName, HostName, Priority, ProjectName
from forewarn.core.model.declaration import FleetSpec, GroupSpec, HostSpec
from forewarn.core.model.project import Project
from tests.helpers.service.harness import SIMULATION, Service, machine

A, B = ProjectName("a"), ProjectName("b")
# The secrets of the harness are consecutive.
OPERATOR, VIEWER, A_VIEWER, A_USER, B_USER = (f"fw_secret-{number}" for number in range(1, 6))
GRANTS = (
    Grant(name="olga", role=Role.OPERATOR),
    Grant(name="vera", role=Role.VIEWER),
    Grant(name="anna-reads", role=Role.VIEWER, project=A),
    Grant(name="anna", role=Role.USER, project=A),
    Grant(name="bert", role=Role.USER, project=B),
)
ROLES = {
    "operator": OPERATOR,
    "viewer": VIEWER,
    "a's viewer": A_VIEWER,
    "a's user": A_USER,
    "b's user": B_USER,
}


def two_projects() -> FleetSpec:
    """Two tenants that share every host. Each has its own machine, and a spot machine of the same name."""
    return fleet_of(A, B)


def fleet_of(*projects: ProjectName) -> FleetSpec:
    return FleetSpec(
        projects=tuple(Project(name=name) for name in projects),
        defaults=SIMULATION,
        hosts=tuple(HostSpec(name=HostName(f"host-{number}")) for number in (1, 2, 3)),
        groups=tuple(
            GroupSpec(
                name=GroupName(f"{name}-web"),
                kind=GroupKind.AVAILABILITY_SET,
                update_domains=2,
                project=name,
            )
            for name in projects
        ),
        machines=tuple(
            each
            for name in projects
            for each in (
                machine(f"{name}-0", "host-1", group=f"{name}-web", project=name),
                machine(f"{name}-1", "host-2", group=f"{name}-web", domain=1, project=name),
                machine("spot", "host-3", project=name, priority=Priority.SPOT),
            )
        ),
    )


def let_in(service: Service) -> None:
    """Create all tokens."""
    for wanted in GRANTS:
        service.tokens.create(wanted, by="test")


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
