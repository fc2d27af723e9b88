"""Scorers, the metrics that sum up their scores, and the reducers that join epochs."""

from proctor.schema import CORRECT, INCORRECT, NOANSWER, PARTIAL, Score, ScoreEdit, Value
from proctor.scorer._answer import AnswerPattern, answer
from proctor.scorer._bootstrap import bootstrap_stderr
from proctor.scorer._cell import MetricFailure
from proctor.scorer._choice import choice
from proctor.scorer._declared import declared_metrics, declared_results, declared_scorers
from proctor.scorer._decorators import metric, score_reducer, scorer, scorer_metrics
from proctor.scorer._exact import exact
from proctor.scorer._f1 import f1
from proctor.scorer._fields import check_fields
from proctor.scorer._grouped import grouped
from proctor.scorer._includes import includes
from proctor.scorer._match import match
from proctor.scorer._mean import accuracy, mean
from proctor.scorer._model_graded import model_graded_fact, model_graded_qa
from proctor.scorer._multi import multi_scorer
from proctor.scorer._pattern import pattern
from proctor.scorer._reducers import (
    at_least,
    check_distinct,
    check_reducers,
    collect_score,
    create_reducers,
    majority_score,
    max_score,
    mean_score,
    median_score,
    mode_score,
    pass_at,
    pass_k,
    reducer_name,
)
from proctor.scorer._results import ResultsBuilder, eval_scorers, metric_definitions, scorer_names
from proctor.scorer._scoring import check_targets
from proctor.scorer._stderr import stderr
from proctor.scorer._types import (
    Accumulator,
    AccumulatorMetric,
    Metric,
    MetricProtocol,
    MetricsSpec,
    SampleScore,
    Scorer,
    ScoreReason,
    ScoreReducer,
    ValueToFloat,
)
from proctor.scorer._value import value_to_float
from proctor.scorer._variance import std, var
from proctor.solver import Target

__all__ = [
    "CORRECT",
    "INCORRECT",
    "NOANSWER",
    "PARTIAL",
    "Accumulator",
    "AccumulatorMetric",
    "AnswerPattern",
    "Metric",
    "MetricFailure",
    "MetricProtocol",
    "MetricsSpec",
    "ResultsBuilder",
    "SampleScore",
    "Score",
    "ScoreEdit",
    "ScoreReason",
    "ScoreReducer",
    "Scorer",
    "Target",
    "Value",
    "ValueToFloat",
    "accuracy",
    "answer",
    "at_least",
    "bootstrap_stderr",
    "check_distinct",
    "check_fields",
    "check_reducers",
    "check_targets",
    "choice",
    "collect_score",
    "create_reducers",
    "declared_metrics",
    "declared_results",
    "declared_scorers",
    "eval_scorers",
    "exact",
    "f1",
    "grouped",
    "includes",
    "majority_score",
    "match",
    "max_score",
    "mean",
    "mean_score",
    "median_score",
    "metric",
    "metric_definitions",
    "mode_score",
    "model_graded_fact",
    "model_graded_qa",
    "multi_scorer",
    "pass_at",
    "pass_k",
    "pattern",
    "reducer_name",
    "score_reducer",
    "scorer",
    "scorer_metrics",
    "scorer_names",
    "std",
    "stderr",
    "value_to_float",
    "var",
]
