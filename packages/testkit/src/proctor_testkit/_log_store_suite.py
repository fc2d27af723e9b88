"""The conformance suite of log stores."""

from __future__ import annotations

from proctor_testkit._store_content_checks import ContentChecks
from proctor_testkit._store_crash_checks import CrashChecks
from proctor_testkit._store_lease_checks import LeaseChecks
from proctor_testkit._store_many_checks import ManyChecks

__all__ = ["LogStoreSuite"]


class LogStoreSuite(ContentChecks, LeaseChecks, CrashChecks, ManyChecks):
    """What every log store must do. A subclass gives an empty store in its ``store`` fixture.

    Its ``name`` fixture is the name of a log in a folder of its own; give another if the store does not take
    ``folder/name.eval`` or keeps its logs from test to test. Capabilities, and the fixture that each needs:

    - ``leases``: ``live`` and ``hold`` know who has a log;
    - ``processes``: several processes share the logs (``opener``);
    - ``dying_leases``: a lease ends with its process, at once, or when the time of a ``lapse`` has passed;
    - ``torn``: a commit can be written in part (``torn``);
    - ``failing``: the store can be made to run out of space (``failing``).

    Example::

        class TestAcmeStore(LogStoreSuite):
            capabilities = frozenset({"leases", "processes"})

            @pytest.fixture
            def store(self, tmp_path):
                return AcmeStore(str(tmp_path))

            @pytest.fixture
            def opener(self, tmp_path):
                return functools.partial(AcmeStore, str(tmp_path))
    """
