"""The engine: plan, schedule, run one sample, record."""

from proctor.engine._agenda import Agenda, Retries
from proctor.engine._edit_scores import edit_score, invalidate_samples, recompute_metrics, uninvalidate_samples
from proctor.engine._errors import ErrorPolicy, exit_code
from proctor.engine._estimate import Amount, UnitEstimate
from proctor.engine._eval import eval, eval_async, outside_a_loop
from proctor.engine._grading import ScoringStopped
from proctor.engine._identity import (
    IDENTITY_VERSION,
    identity_changes,
    logged_ingredients,
    logged_unit,
    without_scored_copies,
)
from proctor.engine._list_tasks import TaskInfo, list_tasks
from proctor.engine._load import TaskLike, find_tasks
from proctor.engine._retry import Resumed, eval_retry, eval_retry_async, retry
from proctor.engine._reuse import ResumePlan, resume_plan
from proctor.engine._run import RunResult, run
from proctor.engine._score_log import score, score_async
from proctor.engine._spec import eval_spec
from proctor.engine._task import Epochs, Task, task, task_with
from proctor.engine._unit import Unit

__all__ = [
    "IDENTITY_VERSION",
    "Agenda",
    "Amount",
    "Epochs",
    "ErrorPolicy",
    "ResumePlan",
    "Resumed",
    "Retries",
    "RunResult",
    "ScoringStopped",
    "Task",
    "TaskInfo",
    "TaskLike",
    "Unit",
    "UnitEstimate",
    "edit_score",
    "eval",
    "eval_async",
    "eval_retry",
    "eval_retry_async",
    "eval_spec",
    "exit_code",
    "find_tasks",
    "identity_changes",
    "invalidate_samples",
    "list_tasks",
    "logged_ingredients",
    "logged_unit",
    "outside_a_loop",
    "recompute_metrics",
    "resume_plan",
    "retry",
    "run",
    "score",
    "score_async",
    "task",
    "task_with",
    "uninvalidate_samples",
    "without_scored_copies",
]
