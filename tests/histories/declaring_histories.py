"""Histories with declared fleets, whose groups, hosts, projects and defaults change."""

from dataclasses import replace
from datetime import timedelta

from forewarn.core.basic_types import DEFAULT_PROJECT, EXTERNAL, SIMULATED, Action, HostName, ProjectName
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource
from forewarn.core.model.project import Project
from tests.helpers.service.harness import group
from tests.histories.histories import GROUPS, NAMES, act
from tests.histories.rollout_histories import RollingHistories

OTHER_PROJECTS = ["blue", "green"]


class DeclaringHistories(RollingHistories):
    """A history with declarations, rollouts and everything of the other histories."""

    STEPS = 30

    def declared(self) -> FleetSpec:
        """Return the present declaration of the fleet."""
        return self.service.fleet.views.fleet()

    @act(40)
    def declares_another_fleet(self) -> None:
        known = self.declared()
        match self.pick(["policy", "project", "projects", "host", "hosts", "defaults", "groups"]):
            case "policy":
                name = self.pick(GROUPS)
                policy = GroupPolicy(
                    defer=timedelta(minutes=self.pick([0, 10])),
                    notice=self.pick([None, timedelta(minutes=30)]),
                    gang=self.pick([False, True]),
                )
                groups = [
                    replace(each, policy=policy) if each.name == name else each for each in known.groups
                ]
                wanted = replace(known, groups=tuple(groups))
            case "project":
                project = Project(name=DEFAULT_PROJECT, calendar=self.calendar())
                others = (each for each in known.projects if each.name != DEFAULT_PROJECT)
                wanted = replace(known, projects=(project, *others))
            case "projects":
                names = self.some(OTHER_PROJECTS, most=2)
                kept = (each for each in known.projects if each.name not in OTHER_PROJECTS)
                wanted = replace(
                    known, projects=(*kept, *(Project(name=ProjectName(name)) for name in names))
                )
            case "host":
                hosts = [replace(each, labels={"rack": self.pick("ab")}) for each in known.hosts]
                wanted = replace(known, hosts=tuple(hosts))
            case "hosts":
                kept_hosts = (each for each in known.hosts if each.name != "spare")
                wanted = replace(known, hosts=(*kept_hosts, *self.spare()))
            case "defaults":
                defaults = FleetDefaults(driver=self.pick([SIMULATED, EXTERNAL]))
                wanted = replace(known, defaults=defaults)
            case _:
                kept_groups = (each for each in known.groups if each.name != "new")
                wanted = replace(known, groups=(*kept_groups, *self.new_group()))
        self.do(self.service.apply, wanted)

    def spare(self) -> list[HostSpec]:
        return self.one([HostSpec(name=HostName("spare"))]) if self.random.random() < 0.5 else []

    def new_group(self) -> list[GroupSpec]:
        return [group("new")] if self.random.random() < 0.5 else []

    @act(20)
    def needs_room(self) -> None:
        """Give a host one place for each machine, so that moves reserve places."""
        known = self.declared()
        hosts = [replace(each, resources={"slots": HostResource(amount=3)}) for each in known.hosts]
        members = [replace(each, resources={"slots": 1.0}) for each in known.machines]
        self.do(self.service.apply, replace(known, hosts=tuple(hosts), machines=tuple(members)))

    @act(20)
    def redeploys(self) -> None:
        for name in self.some(NAMES, most=2):
            self.do(self.service.order, name, self.pick([Action.REDEPLOY, Action.REDEPLOY, Action.EVICT]))
        self.advance(self.pick([0, 30, 960]))
