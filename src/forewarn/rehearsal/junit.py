"""Reports of rehearsals as JUnit's XML, which continuous integration reads."""

from collections.abc import Sequence
from xml.etree import ElementTree

from forewarn.rehearsal.report import RehearsalReport


def junit(reports: Sequence[RehearsalReport]) -> str:
    """Write a suite for each scenario, with a case for itself and one for each guest and probe."""
    suites = ElementTree.Element("testsuites", name="forewarn rehearse")
    for report in reports:
        failed = sum(bool(check.failures) for check in report.checks)
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=report.scenario,
            tests=str(len(report.checks)),
            failures=str(failed),
            errors="0",
            skipped="0",
            time=f"{report.took_seconds:.3f}",
        )
        for check in report.checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"forewarn.{report.scenario}", name=check.name
            )
            if check.failures:
                failure = ElementTree.SubElement(case, "failure", message=_readable(check.failures[0]))
                failure.text = _readable("\n".join(check.failures))
    ElementTree.indent(suites)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(suites, encoding='unicode')}\n"


def _readable(text: str) -> str:
    """Leave out what XML cannot have: a program may have said anything."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
