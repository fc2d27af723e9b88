"""The state of a sample while it is being solved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, TypeVar

from pydantic import BaseModel

from proctor.limits import sample_limits
from proctor.log import Store, StoreModel, use_store
from proctor.schema import (
    ChatMessage,
    ChatMessageBase,
    ChatMessageUser,
    ModelOutput,
    Sample,
    Score,
    ToolChoice,
    short_uuid,
)
from proctor.solver._choices import Choices
from proctor.solver._messages import MessageList, input_messages
from proctor.solver._target import Target
from proctor.tool import Tool, ToolDef, ToolSource

__all__ = ["ModelName", "TaskState", "sample_state", "set_sample_state", "state_from_sample"]

MT = TypeVar("MT", bound=BaseModel)
SMT = TypeVar("SMT", bound=StoreModel)

_SCALARS = (str, int, float, bool, type(None))


class ModelName(str):
    """The full name of a model, ``provider/model``, and its two parts."""

    __slots__ = ()

    @property
    def api(self) -> str:
        """The provider: what stands before the first slash."""
        return self.partition("/")[0]

    @property
    def name(self) -> str:
        """The model as the provider calls it: what stands after the first slash."""
        return self.partition("/")[2]


class TaskState:
    """What a solver reads and changes: the conversation, the output, and what is known about the sample.

    Args:
        model: the full name of the model that is being evaluated.
        sample_id: the sample's id.
        epoch: which repetition this is, from 1.
        input: the sample's input as the dataset has it.
        messages: the conversation so far; the state takes it over.
        target: the ideal answer.
        choices: the choices of a multiple-choice sample.
        output: the model's latest output.
        message_limit, token_limit, cost_limit: the sample's own limits, for the record.
        completed: whether the sample is done.
        metadata: the sample's metadata; the state takes it over.
        store: the sample's store, or the data of one.
        scores: scores given while solving.
        sample_uuid: the identifier of this attempt.
    """

    def __init__(
        self,
        model: str,
        sample_id: int | str,
        epoch: int,
        input: str | list[ChatMessage],
        messages: Sequence[ChatMessage],
        target: Target | str | Sequence[str] = "",
        choices: Sequence[str] | Choices | None = None,
        output: ModelOutput | None = None,
        message_limit: int | None = None,
        token_limit: int | None = None,
        token_limit_type: str = "all",
        cost_limit: float | None = None,
        completed: bool = False,
        metadata: dict[str, Any] | None = None,
        store: Store | dict[str, Any] | None = None,
        scores: dict[str, Score] | None = None,
        sample_uuid: str | None = None,
    ) -> None:
        self._model = model
        self._sample_id = sample_id
        self._epoch = epoch
        self._input = input
        self._target = target if isinstance(target, Target) else Target(target)
        self._choices = choices if choices and isinstance(choices, Choices) else Choices(choices or ())
        self._messages = MessageList(messages)
        self._output = output
        self._store = store
        self._tools: list[Tool | ToolSource] = []
        self._uuid = sample_uuid
        self.metadata: dict[str, Any] = {} if metadata is None else metadata
        self.tool_choice: ToolChoice | None = None
        self.message_limit = message_limit
        self.token_limit = token_limit
        self.token_limit_type = token_limit_type
        self.cost_limit = cost_limit
        self.completed = completed
        self.scores = scores

    @property
    def model(self) -> ModelName:
        """The full name of the model that is being evaluated."""
        return ModelName(self._model)

    @property
    def sample_id(self) -> int | str:
        """The sample's id."""
        return self._sample_id

    @property
    def epoch(self) -> int:
        """Which repetition of the sample this is, from 1."""
        return self._epoch

    @property
    def uuid(self) -> str:
        """The identifier of this attempt at the sample."""
        if self._uuid is None:
            self._uuid = short_uuid()
        return self._uuid

    @property
    def input(self) -> str | list[ChatMessage]:
        """The sample's input as the dataset has it; not to be changed."""
        return self._input

    @property
    def input_text(self) -> str:
        """The input as text: of a conversation, the text of its last user message.

        Raises:
            ValueError: if the input is a conversation without a user message.
        """
        if isinstance(self._input, str):
            return self._input
        return _last_user(self._input, "input").text

    @property
    def user_prompt(self) -> ChatMessageUser:
        """The last user message of the conversation; prompts are changed by changing its ``text``.

        Raises:
            ValueError: if there is none.
        """
        return _last_user(self._messages, "conversation")

    @property
    def target(self) -> Target:
        """The ideal answer."""
        return self._target

    @property
    def choices(self) -> Choices:
        """The choices of a multiple-choice sample, in the order in which the model sees them."""
        return self._choices

    @property
    def messages(self) -> list[ChatMessage]:
        """The conversation."""
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[ChatMessage]) -> None:
        self._messages = messages if isinstance(messages, MessageList) else MessageList(messages)

    @property
    def output(self) -> ModelOutput:
        """The model's latest output (an empty one before the first)."""
        if self._output is None:
            self._output = ModelOutput(model=self._model)
        return self._output

    @output.setter
    def output(self, output: ModelOutput) -> None:
        self._output = output

    @property
    def store(self) -> Store:
        """The sample's store: data that solvers, tools and scorers share."""
        if not isinstance(self._store, Store):
            self._store = Store(self._store or {})
        return self._store

    @property
    def tools(self) -> list[Tool | ToolSource]:
        """The tools that the model may call."""
        return self._tools

    @tools.setter
    def tools(self, tools: Iterable[Tool | ToolDef | ToolSource]) -> None:
        self._tools = [tool.as_tool() if isinstance(tool, ToolDef) else tool for tool in tools]

    @property
    def max_messages(self) -> int | None:
        """The message limit, under its older name."""
        return self.message_limit

    @property
    def token_usage(self) -> int:
        """Tokens that the sample has used so far."""
        limits = sample_limits()
        return 0 if limits is None else limits.tokens

    @property
    def cost_usage(self) -> float:
        """Dollars that the sample has cost so far, as far as prices are known."""
        limits = sample_limits()
        return 0 if limits is None else limits.dollars

    def metadata_as(self, metadata_cls: type[MT]) -> MT:
        """The metadata as a pydantic model (a frozen view: changing it changes nothing here).

        Raises:
            pydantic.ValidationError: if the metadata does not fit.
        """
        return metadata_cls.model_validate(self.metadata)

    def store_as(self, model_cls: type[SMT], instance: str | None = None) -> SMT:
        """The store as a typed model; ``instance`` keeps several of one class apart."""
        with use_store(self.store):
            return model_cls(instance=instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> TaskState:
        """A state that shares nothing with this one but its tools."""
        copy = TaskState.__new__(TaskState)
        memo[id(self)] = copy
        for name, value in self.__dict__.items():
            copy.__dict__[name] = list(value) if name == "_tools" else deepcopy(value, memo)
        return copy


def _last_user(messages: Sequence[ChatMessageBase], where: str) -> ChatMessageUser:
    for message in reversed(messages):
        if isinstance(message, ChatMessageUser):
            return message
    raise ValueError(f"there is no user message in the {where} (roles: {[getattr(m, 'role', '') for m in messages]})")


def state_from_sample(
    sample: Sample,
    *,
    model: str,
    sample_id: int | str,
    epoch: int,
    uuid: str | None = None,
    store: Store | None = None,
) -> TaskState:
    """The state in which a sample starts: nothing in it is shared with the sample or with its other epochs."""
    metadata = sample.metadata or {}
    plain = all(isinstance(value, _SCALARS) for value in metadata.values())
    return TaskState(
        model=model,
        sample_id=sample_id,
        epoch=epoch,
        input=sample.input,
        messages=input_messages(sample.input),
        target=Target(sample.target),
        choices=sample.choices,
        metadata=dict(metadata) if plain else deepcopy(metadata),
        store=store,
        sample_uuid=uuid,
    )


_current: ContextVar[TaskState | None] = ContextVar("proctor_sample_state", default=None)


def set_sample_state(state: TaskState) -> None:
    """Make ``state`` the one that ``sample_state`` finds in this task and those it starts."""
    _current.set(state)


def sample_state() -> TaskState | None:
    """The state of the sample that is being solved here, if any."""
    return _current.get()
