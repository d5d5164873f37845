"""The recipe for a Kubernetes node: Debian's kubectl, with an API server of the test."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Ending, Over
from tests.helpers.programs.agent_program import AgentProgram, serving
from tests.helpers.programs.process import Program
from tests.helpers.programs.recipe_agents import EXAMPLES, agent_with
from tests.system.kubernetes_api import NODE, Cluster, kubernetes

# `make test-system` unpacks Debian's package here, because another kubectl may be installed.
UNPACKED = Path(sys.prefix) / "kubernetes-client/usr/bin"
TRY_AGAIN = 75
MARK = "forewarn/cordoned-for"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PATH", f"{UNPACKED}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))  # kubectl's cache
    assert shutil.which("kubectl") == str(UNPACKED / "kubectl")
    with kubernetes(tmp_path) as made:
        yield made


def ran(program: str, folder: Path, *, left: int = 900) -> "subprocess.CompletedProcess[str]":
    """Run a program of the recipe like the agent."""
    own = {
        "NODE": NODE,
        "KUBECONFIG": str(folder / "kubeconfig"),
        "FOREWARN_EVENT_ID": "A",
        "FOREWARN_SECONDS_LEFT": str(left),
    }
    words = [EXAMPLES / "kubernetes" / program]
    return subprocess.run(words, env=os.environ | own, capture_output=True, text=True, check=False)


def agent_of(service: Program, folder: Path) -> AgentProgram:
    places = {"{ KUBECONFIG": f'{{ NODE = "{NODE}", KUBECONFIG', 'retry = "10s"': 'retry = "1s"'}
    return agent_with("kubernetes", service=service, machine="web-0", folder=folder, places=places)


def test_a_node_is_drained_before_the_event_and_uncordoned_after_it(tmp_path: Path, cluster: Cluster) -> None:
    with serving(tmp_path) as service, agent_of(service, tmp_path) as agent:
        cluster.away = True
        service.post("/v1/machines/web-0/restart")
        agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.AGAIN)
        assert not cluster.cordoned
        cluster.away = False
        agent.wait_for(Approved)
        assert cluster.cordoned
        assert sorted(cluster.evicted) == ["cart", "shop"]
        assert list(cluster.pods) == ["node-logs"], "pods of daemon sets stay"
        cluster.away = True
        service.advance(900)
        agent.wait_for(Ended, side=Side.RECOVER, ending=Ending.AGAIN)
        assert cluster.cordoned
        cluster.away = False
        agent.wait_for(Over)
        assert not cluster.cordoned
        assert cluster.annotations == {}


def test_an_unavailable_cluster_leaves_no_annotation(tmp_path: Path, cluster: Cluster) -> None:
    cluster.away = True
    assert ran("drain", tmp_path).returncode == TRY_AGAIN
    assert (cluster.annotations, cluster.cordoned) == ({}, False)


def test_a_node_cordoned_by_an_administrator_stays_cordoned_even_if_the_first_request_failed(
    tmp_path: Path, cluster: Cluster
) -> None:
    cluster.cordon()
    cluster.away = True
    assert ran("drain", tmp_path).returncode == TRY_AGAIN
    cluster.away = False
    drained = ran("drain", tmp_path)
    assert drained.returncode == 0, drained.stderr
    assert cluster.annotations == {}
    back = ran("uncordon", tmp_path)
    assert (back.returncode, back.stdout) == (0, "web-0 was not cordoned by the agent: left as it is\n")
    assert cluster.cordoned


def test_the_eviction_of_a_protected_pod_is_retried(tmp_path: Path, cluster: Cluster) -> None:
    cluster.protected.add("cart")
    assert ran("drain", tmp_path, left=40).returncode == TRY_AGAIN
    assert cluster.evicted == ["shop"]
    assert cluster.annotations == {MARK: "A"}
    cluster.protected.clear()
    assert ran("drain", tmp_path).returncode == 0
    assert sorted(cluster.evicted) == ["cart", "shop"]
    assert ran("uncordon", tmp_path).returncode == 0
    assert not cluster.cordoned
