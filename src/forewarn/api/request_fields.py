"""The types of fields in queries and bodies, each with its check and its schema."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from forewarn.core.errors import Invalid
from forewarn.core.words import GroupName, HostName, MachineName, ProjectName
from forewarn.wire.fields import NAME, NAME_RULE, is_name
from forewarn.wire.rfc3339 import EXPECTED_TIME, read_time

# What a column can hold.
LARGEST = 2**63 - 1
LONGEST_LINE = 1000

# No line breaks and nothing invisible, nor halves of characters, which no database can hold.
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"


def one_line(text: str) -> str:
    """Refuse what would not be one line of text."""
    if _NOT_IN_A_LINE.search(text):
        raise ValueError("expected one line without control characters")
    return text


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"expected a name of {NAME_RULE}")
    return text


def _time(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - pydantic takes only a ValueError for a refusal
    try:
        return read_time(value)
    except Invalid:
        raise ValueError(EXPECTED_TIME) from None


_IS_NAME = AfterValidator(_name)
_NAME_SCHEMA = Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})

Line = Annotated[
    str,
    AfterValidator(one_line),
    Field(max_length=LONGEST_LINE, json_schema_extra={"pattern": _LINE_PATTERN}),
]
Name = Annotated[str, _IS_NAME, _NAME_SCHEMA]
ProjectField = Annotated[ProjectName, _IS_NAME, _NAME_SCHEMA]
GroupField = Annotated[GroupName, _IS_NAME, _NAME_SCHEMA]
HostField = Annotated[HostName, _IS_NAME, _NAME_SCHEMA]
MachineField = Annotated[MachineName, _IS_NAME, _NAME_SCHEMA]
Guid = Annotated[Line, Field(json_schema_extra={"format": "uuid"})]
Time = Annotated[
    datetime,
    BeforeValidator(_time),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "maxLength": LONGEST_LINE, "pattern": _LINE_PATTERN}
    ),
]
# Opaque to clients, which send it back.
Cursor = Annotated[Line, Field(json_schema_extra={"pattern": r"^[A-Za-z0-9_-]+$"})]
