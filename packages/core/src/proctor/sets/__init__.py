"""Eval sets: tasks and models in one folder, run again and again until all of them are complete."""

from proctor.sets._files import held_set, read_set_id
from proctor.sets._folder import Alien, Folder, scan_folder
from proctor.sets._plan import SetPlan, SetUnit, make_set_plan
from proctor.sets._set import SetResult, eval_set, run_set

__all__ = [
    "Alien",
    "Folder",
    "SetPlan",
    "SetResult",
    "SetUnit",
    "eval_set",
    "held_set",
    "make_set_plan",
    "read_set_id",
    "run_set",
    "scan_folder",
]
