"""Errors of a domain's job: no job, or no answer."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from forewarn.core.basic_types import HostName
from forewarn.drivers.libvirt.domain_view import DomainJob
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer, NoSuchDomain, converted_errors


class LibvirtError(Exception):
    """The library's error with its code."""

    def get_error_code(self) -> int:
        return int(self.args[0])


class Library:
    """The names of libvirt-python that these tests use."""

    libvirtError = LibvirtError  # noqa: N815 - libvirt's name
    VIR_ERR_INTERNAL_ERROR = 1
    VIR_ERR_NO_SUPPORT = 3
    VIR_ERR_NO_CONNECT = 5
    VIR_ERR_RPC = 39
    VIR_ERR_NO_DOMAIN = 42
    VIR_ERR_OPERATION_INVALID = 55
    VIR_ERR_OPERATION_TIMEOUT = 68
    VIR_ERR_OPERATION_UNSUPPORTED = 84
    VIR_DOMAIN_JOB_NONE = 0
    VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT = 4


class Migrated:
    """A libvirt domain with one answer about its job."""

    def __init__(self, said: Any) -> None:
        self._said = said

    def isAlive(self) -> bool:  # noqa: N802 - it stands for the connection too
        return True

    def jobStats(self) -> Any:  # noqa: N802
        if isinstance(self._said, int):
            raise LibvirtError(self._said)
        return self._said


def job(said: Any) -> DomainJob | None:
    library: Any = Library
    domain = Migrated(said)

    def asked() -> AbstractContextManager[None]:
        return converted_errors(library, HostName("kvm04"), domain)

    return Domain(library, domain, converted=asked).job()


@pytest.mark.parametrize(
    "said",
    [
        Library.VIR_ERR_OPERATION_UNSUPPORTED,
        Library.VIR_ERR_OPERATION_INVALID,
        Library.VIR_ERR_NO_SUPPORT,
        {"type": Library.VIR_DOMAIN_JOB_NONE},
        {"type": 2, "operation": 1},
    ],
)
def test_a_domain_without_an_outgoing_migration_has_no_job(said: Any) -> None:
    assert job(said) is None


def test_an_outgoing_migration_has_its_progress() -> None:
    leaving = {"type": 2, "operation": Library.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT}
    assert job(leaving) == DomainJob()
    assert job({**leaving, "data_total": 8, "data_remaining": 2}) == DomainJob(progress=0.75)


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (Library.VIR_ERR_RPC, NoLibvirtAnswer),
        (Library.VIR_ERR_OPERATION_TIMEOUT, NoLibvirtAnswer),
        (Library.VIR_ERR_NO_DOMAIN, NoSuchDomain),
        (Library.VIR_ERR_INTERNAL_ERROR, LibvirtRefused),
    ],
)
def test_other_errors_are_not_mistaken_for_no_job(code: int, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        job(code)
