"""Errors about a field: the path of the field and what was expected."""

from forewarn.core.errors import Invalid


class InvalidField(Invalid):
    """A field has a wrong value. The message is `PATH: EXPECTED`, such as `windows[0].start: expected …`."""

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path}: {expected}")
        self.path = path
        self.expected = expected


class within_field:  # noqa: N801 - a context manager
    """Add a field's path to errors.

    A class, because a generator would double the time to read a large fleet.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, fault: BaseException | None, _traceback: object) -> None:
        if isinstance(fault, InvalidField):
            raise InvalidField(self._path + fault.path, fault.expected) from None
        if isinstance(fault, Invalid):
            raise InvalidField(self._path, str(fault)) from None
