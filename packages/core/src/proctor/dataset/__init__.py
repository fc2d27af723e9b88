"""Samples, and where they come from."""

from proctor.dataset._dataset import Dataset
from proctor.dataset._fields import FieldSpec, RecordToSample
from proctor.dataset._iterable import IterableDataset
from proctor.dataset._memory import MemoryDataset
from proctor.dataset._select import Selection, select
from proctor.dataset._sources import csv_dataset, file_dataset, json_dataset
from proctor.schema import Sample

__all__ = [
    "Dataset",
    "FieldSpec",
    "IterableDataset",
    "MemoryDataset",
    "RecordToSample",
    "Sample",
    "Selection",
    "csv_dataset",
    "file_dataset",
    "json_dataset",
    "select",
]
