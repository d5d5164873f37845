"""What requests may carry: query parameters and bodies, where anything unknown is an error."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from forewarn.core.model import OrderState

# As many as a person or a script reads at once; a fleet of any size is read page by page.
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected one line of printable characters")
    return text


Line = Annotated[str, AfterValidator(_one_line), Field(max_length=1000)]


class Query(BaseModel):
    """Query parameters."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(Query):
    """Which page of a list."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many at most.")
    after: Line | None = Field(None, description="The `next` of the page before.")


class OrdersQuery(PageQuery):
    """Which orders."""

    state: OrderState | None = Field(None, description="Only orders in this state.")


class HistoryQuery(PageQuery):
    """Which records."""

    project: Line | None = Field(None, description="Only of this project.")
    machine: Line | None = Field(None, description="Only of this machine.")
    event: Line | None = Field(None, description="Only of this event.")
    order: Line | None = Field(None, description="Only of this order.")
    since: Line | None = Field(None, description="Only from this time on (RFC 3339).")


class ProjectQuery(Query):
    """Whose machine."""

    project: Line | None = Field(None, description="Its project; needed where several have the name.")


class FleetQuery(Query):
    """How a fleet is applied."""

    dry_run: bool = Field(default=False, description="Only say what would change.")


class Body(BaseModel):
    """A body of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OrderBody(Body):
    """Why something is ordered."""

    reason: Line = Field("", description="Why, for the records.")


class MaintenanceBody(OrderBody):
    """What is to be done to a host's machines."""

    action: Literal["freeze", "reboot", "redeploy"]


class AdvanceBody(Body):
    """How far the clock is to be turned."""

    seconds: float = Field(ge=0, allow_inf_nan=False)
