"""The engine: plan, schedule, run one sample, record."""

from proctor.engine._agenda import Agenda, Retries
from proctor.engine._errors import ErrorPolicy, exit_code
from proctor.engine._eval import eval, eval_async
from proctor.engine._load import TaskInfo, find_tasks, list_tasks
from proctor.engine._run import RunResult, run
from proctor.engine._task import Epochs, Task, task, task_with
from proctor.engine._unit import Unit

__all__ = [
    "Agenda",
    "Epochs",
    "ErrorPolicy",
    "Retries",
    "RunResult",
    "Task",
    "TaskInfo",
    "Unit",
    "eval",
    "eval_async",
    "exit_code",
    "find_tasks",
    "list_tasks",
    "run",
    "task",
    "task_with",
]
