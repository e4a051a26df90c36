"""Sequences of different lengths: padding, masks, buckets."""

import numpy as np
import pytest
import torch

import weft as wf
from weft.data import BucketSampler, DataLoader, bucket_by_length, pad_sequence
from weft.errors import DTypeError, ShapeError


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_agrees_with_pytorch(batch_first):
    arrays = [np.random.default_rng(n).normal(size=(n, 3)).astype("f4") for n in (4, 1, 6)]
    want = torch.nn.utils.rnn.pad_sequence([torch.tensor(a) for a in arrays], batch_first, -1.0)
    for given in (arrays, [wf.tensor(a) for a in arrays]):
        got = pad_sequence(given, batch_first, -1.0)
        assert (got.numpy() == want.numpy()).all()


def test_gradients_go_through_padding():
    xs = [wf.tensor([1.0, 2.0], requires_grad=True), wf.tensor([3.0], requires_grad=True)]
    out = pad_sequence(xs, batch_first=True, padding_value=9.0)
    assert out.tolist() == [[1, 2], [3, 9]]
    (out * out).sum().backward()
    assert xs[0].grad.tolist() == [2, 4] and xs[1].grad.tolist() == [6]


def test_masks_and_lengths_to_pad_to():
    out, mask = pad_sequence([[1, 2], [3]], to=[4, 2, 8], return_mask=True)
    assert out.tolist() == [[1, 3], [2, 0]] and mask.tolist() == [[True, True], [True, False]]
    assert pad_sequence([[1, 2, 3]], to=[4, 8]).shape == (4, 1)
    assert pad_sequence([[1.5], [2.5]]).dtype is wf.float32
    with pytest.raises(ShapeError, match="3 or more"):
        pad_sequence([[1, 2, 3]], to=2)
    for bad in ([], [wf.zeros((2, 3)), wf.zeros((2, 4))], [wf.zeros(())], 3):
        with pytest.raises(ShapeError):
            pad_sequence(bad)


def test_buckets():
    assert bucket_by_length([3, 9, 1, 4, 5], [3, 5]) == [[0, 2], [3, 4], [1]]
    assert bucket_by_length(["ab", "c"], [5], key=lambda s: 10 * len(s)) == [[], [0, 1]]
    with pytest.raises(ShapeError, match="rise"):
        bucket_by_length([1], [3, 3])
    with pytest.raises(DTypeError):
        bucket_by_length([2.5], [3])


def test_a_batch_is_of_one_bucket():
    wf.manual_seed(0)
    lengths = np.random.default_rng(0).integers(5, 200, 300).tolist()
    data = [np.ones(n, np.float32) for n in lengths]
    sampler = BucketSampler(lengths, batch_size=16, buckets=6)
    pad = lambda batch: pad_sequence(batch, batch_first=True, to=sampler.boundaries)
    loader = DataLoader(data, batch_sampler=sampler, collate_fn=pad)
    first, second = ([b.shape for b in loader] for _ in range(2))
    assert len(first) == len(sampler) == len(loader) and first != second
    assert sum(n for n, _ in first) == 300
    assert len({size for _, size in first}) <= 6
    seen = sorted(i for batch in sampler for i in batch)
    assert seen == list(range(300))
    assert all(len(b) == 16 for b in BucketSampler(lengths, 16, drop_last=True))
    with pytest.raises(ShapeError):
        BucketSampler([1], 0)
