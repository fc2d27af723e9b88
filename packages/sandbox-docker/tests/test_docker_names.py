"""Names of containers."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from proctor.contracts import SandboxOwner
from proctor_sandbox_docker._names import container_name, given_name, given_owner

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")  # what engines take
OWNER = SandboxOwner.of_this_process("run7", task="A quiz.of ours")


@given(st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable()), st.integers(1, 1000))
@example("HumanEval/12", 1)
@example("a.b_c-d.1.2", 3)
def test_the_sample_that_a_container_was_given_to_can_be_read_from_its_name(sample: str, epoch: int) -> None:
    name = given_name(replace(OWNER, sample=sample, epoch=epoch))

    assert NAME.fullmatch(name)
    found = given_owner(name, OWNER)
    assert found is not None
    assert found.run_id == "run7"
    assert found.epoch == epoch
    assert found.sample == sample or len(name) > 200, "the rest of a long one is cut"
    assert sample.startswith(found.sample)


def test_a_name_of_another_kind_tells_of_no_sample() -> None:
    for name in (container_name(OWNER), container_name(replace(OWNER, sample="s.1", epoch=2)), "a..1.b", "a.b.c.d"):
        assert given_owner(name, OWNER) is None
