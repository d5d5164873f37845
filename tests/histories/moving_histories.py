"""Histories in which operators also move single machines."""

from forewarn.core.basic_types import EXTERNAL, Action, OrderState, StepState, Work
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from tests.histories.histories import HOSTS, NAMES, Histories, act
from tests.histories.situations import Look, Situation


class MovingHistories(Histories):
    """A history that moves machines, live or not, to a chosen host or the best one."""

    @act(60)
    def moves_one_machine(self) -> None:
        """Move a machine while other actions affect it, its group and its hosts."""
        work = self.pick([Work.FREEZE, Work.REDEPLOY])
        terms = OrderTerms(to=self.pick([None, *HOSTS]))
        request = OrderRequest(by="test", driver=self.pick([None, EXTERNAL]), work=work, terms=terms)
        self.do(self.service.orders.order_machine, self.pick(NAMES), Action.MOVE, request)
        if self.random.random() < 0.7:
            self.approve_all()
        self.advance(self.pick([1, 300, 960]))
        self.look(self.service.everything())


def _moves(state: OrderState, work: Work) -> Situation:
    def are_met(look: Look) -> bool:
        orders = (order for order in look.fleet.orders.values() if order.action is Action.MOVE)
        return any((order.state, order.work) == (state, work) for order in orders)

    return are_met


def _is_named(look: Look) -> bool:
    """Whether a machine moves to a host that an operator chose."""
    orders = (order for order in look.fleet.orders.values() if order.terms.to is not None)
    return any(step.state is StepState.RUNNING for order in orders for step in order.steps)


MOVING_SITUATIONS = {
    "a live move is announced": _moves(OrderState.ANNOUNCED, Work.FREEZE),
    "a live move has started": _moves(OrderState.STARTED, Work.FREEZE),
    "a cold move has started": _moves(OrderState.STARTED, Work.REDEPLOY),
    "a move waits": _moves(OrderState.QUEUED, Work.REDEPLOY),
    "a machine goes to a named host": _is_named,
}
