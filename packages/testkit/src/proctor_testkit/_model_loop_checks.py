"""Checks of model providers: what a call does to the event loop that it shares with all others."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import anyio.to_thread

from proctor.model import GenerateConfig, Model
from proctor_testkit._held_server import PATIENCE, held
from proctor_testkit._loop_turns import STOPPED, longest_stop
from proctor_testkit._model_checks import FakeServer, ModelChecks
from proctor_testkit._suite import check

__all__ = ["LoopChecks"]

AT_ONCE = 5
SHORT = GenerateConfig(max_tokens=8)


class LoopChecks(ModelChecks):
    """A call waits without keeping others from going on, and can be given up while it waits."""

    @check("model.cancel")
    async def test_a_cancelled_call_ends_and_the_next_one_works(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await self.ask(model.api)
                await anyio.lowlevel.checkpoint()  # a model in the process itself may never have waited
            output = await self.ask(model.api)

        assert scope.cancelled_caught, "a call that is cancelled raises the back-end's own exception: let it pass"
        assert output.completion, "after a call that was cancelled the next one replies"

    @check("model.cancel_waiting", needs="server")
    async def test_a_call_that_waits_for_its_answer_can_be_cancelled(self, server: FakeServer) -> None:
        ended = anyio.Event()

        async def call(model: Model) -> None:
            try:
                await self.ask(model.api)
            finally:
                ended.set()

        with held(server.base_url) as service:
            async with self.made(service) as model, anyio.create_task_group() as group:
                group.start_soon(call, model)
                asked = await anyio.to_thread.run_sync(service.wait, 1)
                group.cancel_scope.cancel()
                with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE / 2):
                    await ended.wait()
                let_go = ended.is_set()
                service.release()
        assert asked, "a call sends its request, and the loop turns while it waits for the answer"
        assert let_go, (
            "a call that is cancelled while it waits for its answer ends at once: time limits, and Ctrl-C, rely on it; "
            "nothing may shield it, and no blocking call keep the loop from turning"
        )

    @check("model.overlap", needs="server")
    async def test_calls_at_once_wait_at_once(self, server: FakeServer) -> None:
        with held(server.base_url) as service:
            async with self.made(service) as model, anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(self.ask, model.api)
                together = await anyio.to_thread.run_sync(service.wait, AT_ONCE)
                service.release()

        assert together, (
            f"of {AT_ONCE} calls at once only {service.arrived} had sent their request before the first answer: calls "
            "must not wait for each other, nor block the event loop; the core decides how many there are at once"
        )

    @check("model.unblocked")
    async def test_the_event_loop_goes_on_during_a_call(self, server: FakeServer | None) -> None:
        async with self.made(server) as model:
            await self.ask(model.api, SHORT)  # what is made once may take its time
            stops = [await longest_stop(self.ask, model.api, SHORT) for _ in range(AT_ONCE)]

        # A machine that is busy stops a loop now and then; a call that blocks does so each time.
        assert min(stops) < STOPPED, (
            "the event loop stood still in every call, and with it all other samples: what blocks (a synchronous "
            "request, time.sleep, work on the processor) belongs into anyio.to_thread.run_sync"
        )
