"""The HumanEval example runs in pods as it does elsewhere."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proctor_testkit import FakeKubernetes

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "humaneval.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside an installed package")
def test_humaneval_runs_in_pods(cluster: FakeKubernetes, tmp_path: Path) -> None:
    assert shutil.which("python3"), "the pods are processes of this machine"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "proctor", "eval", str(EXAMPLE), "--model", "mock/model", "--limit", "4"),
            *("--sandbox", "k8s:python", "--log-dir", str(tmp_path / "logs"), "--display", "plain"),
        ],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr

    [log] = (tmp_path / "logs").glob("*.eval")
    told = subprocess.run(
        [sys.executable, "-m", "proctor", "log", "dump", str(log)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    samples = json.loads(told.stdout)["samples"]
    assert [sample["scores"]["passes_tests"]["value"] for sample in samples] == ["I"] * 4
    assert all("SyntaxError" in sample["scores"]["passes_tests"]["explanation"] for sample in samples)
    assert cluster.count("^create pods") == 4
