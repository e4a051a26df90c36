"""Data for training: datasets, samplers, loading in batches, sequences of different lengths."""

from weft.data.collate import default_collate as default_collate
from weft.data.dataset import (
    ConcatDataset as ConcatDataset,
    Dataset as Dataset,
    IterableDataset as IterableDataset,
    Subset as Subset,
    TensorDataset as TensorDataset,
    random_split as random_split,
)
from weft.data.images import ImageFolder as ImageFolder
from weft.data.loader import DataLoader as DataLoader
from weft.data.readers import (
    TextLines as TextLines,
    read_csv as read_csv,
    read_idx as read_idx,
    read_npy as read_npy,
)
from weft.data.sampler import (
    BatchSampler as BatchSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequentialSampler as SequentialSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)
from weft.data.sequences import (
    BucketSampler as BucketSampler,
    bucket_by_length as bucket_by_length,
    pad_sequence as pad_sequence,
)
from weft.data.workers import get_worker_info as get_worker_info
