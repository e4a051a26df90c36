"""Functions of neural networks name what is wrong with their arguments."""

import pytest

import weft as wf
import weft.nn.functional as F

BAD = [
    (wf.errors.ShapeError, lambda: F.mse_loss(wf.zeros(3), wf.zeros(4))),
    (wf.errors.ShapeError, lambda: F.mse_loss(wf.zeros(3), wf.zeros((3, 1)))),
    (wf.errors.ShapeError, lambda: F.mse_loss(wf.zeros(3), wf.zeros(3), reduction="average")),
    (wf.errors.DTypeError, lambda: F.mse_loss(wf.arange(3), wf.zeros(3))),
    (wf.errors.ShapeError, lambda: F.cross_entropy(wf.zeros((3, 5)), wf.tensor([1, 2]))),
    (wf.errors.IndexRangeError, lambda: F.cross_entropy(wf.zeros((2, 5)), wf.tensor([1, 5]))),
    (
        wf.errors.ShapeError,
        lambda: F.cross_entropy(wf.zeros((2, 5)), wf.tensor([1, 2]), label_smoothing=2),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.cross_entropy(wf.zeros((2, 5)), wf.tensor([1, 2]), weight=wf.ones(4)),
    ),
    (wf.errors.DTypeError, lambda: F.softmax(wf.arange(3))),
    (wf.errors.ShapeError, lambda: F.softmax(wf.zeros((3, 4)), 2)),
    (wf.errors.DTypeError, lambda: F.gelu(wf.zeros(3), approximate="erf")),
    (wf.errors.ShapeError, lambda: F.glu(wf.zeros(3))),
    (wf.errors.ShapeError, lambda: F.layer_norm(wf.zeros((3, 4)), (3,))),
    (wf.errors.ShapeError, lambda: F.layer_norm(wf.zeros((3, 4)), (4,), wf.zeros(3))),
    (wf.errors.ShapeError, lambda: F.group_norm(wf.zeros((2, 6, 3)), 4)),
    (wf.errors.ShapeError, lambda: F.batch_norm(wf.zeros((1, 3)), None, None, training=True)),
    (wf.errors.ShapeError, lambda: F.batch_norm(wf.zeros((2, 3)), None, None)),
    (wf.errors.ShapeError, lambda: F.linear(wf.zeros((2, 3)), wf.zeros((4, 5)))),
    (wf.errors.DTypeError, lambda: F.embedding(wf.zeros(2), wf.zeros((4, 5)))),
    (wf.errors.IndexRangeError, lambda: F.embedding(wf.tensor([4]), wf.zeros((4, 5)))),
    (
        wf.errors.IndexRangeError,
        lambda: F.embedding(wf.tensor([3]), wf.zeros((4, 5)), padding_idx=4),
    ),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)))),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), 3, 2)),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), (3, 3))),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), 0)),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), scale_factor=0.1)),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), 3, mode="bicubic")),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), 3, mode="bilinear")),
    (wf.errors.ShapeError, lambda: F.interpolate(wf.ones((1, 1, 4)), 3, align_corners=True)),
    (wf.errors.ShapeError, lambda: F.pixel_shuffle(wf.ones((1, 3, 4, 4)), 2)),
    (wf.errors.ShapeError, lambda: F.pixel_unshuffle(wf.ones((1, 3, 4, 5)), 2)),
    (wf.errors.ShapeError, lambda: F.pixel_unshuffle(wf.ones((4, 5)), 0)),
    (wf.errors.DTypeError, lambda: F.pixel_shuffle([1.0], 2)),
    (wf.errors.IndexRangeError, lambda: F.one_hot(wf.tensor([3]), 3)),
    (wf.errors.IndexRangeError, lambda: F.one_hot(wf.tensor([-1]))),
    (wf.errors.ShapeError, lambda: F.dropout(wf.zeros(3), 1.5)),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (1, 2, 3))),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (1, 2), "mirror")),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (4, 0), "reflect")),
    (wf.errors.ShapeError, lambda: F.pad(wf.zeros((3, 4)), (-3, -2))),
    (wf.errors.ShapeError, lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 2, 3, 3)))),
    (wf.errors.ShapeError, lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 9, 9)))),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), stride=0),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), padding=-1),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), padding="full"),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), padding="same", stride=2),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3)), wf.zeros(3)),
    ),
    (wf.errors.ShapeError, lambda: F.conv1d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3)))),
    (
        wf.errors.ShapeError,
        lambda: F.conv_transpose2d(wf.zeros((1, 3, 8, 8)), wf.zeros((4, 3, 3, 3))),
    ),
    (
        wf.errors.ShapeError,
        lambda: F.conv_transpose2d(
            wf.zeros((1, 3, 8, 8)), wf.zeros((3, 3, 3, 3)), output_padding=1
        ),
    ),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((3, 4)), 2)),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((1, 3, 4, 4)), 5)),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((1, 3, 4, 4)), 2, padding=2)),
    (wf.errors.ShapeError, lambda: F.max_pool2d(wf.zeros((1, 3, 4, 4)), 0)),
    (wf.errors.ShapeError, lambda: F.avg_pool2d(wf.zeros((1, 3, 4, 4)), 2, divisor_override=0)),
    (wf.errors.ShapeError, lambda: F.adaptive_avg_pool2d(wf.zeros((1, 3, 4, 4)), 0)),
    (wf.errors.ShapeError, lambda: F.adaptive_avg_pool2d(wf.zeros((1, 3, 4, 4)), (2, 2, 2))),
    (
        wf.errors.ShapeError,
        lambda: F.scaled_dot_product_attention(
            wf.zeros((3, 4)), wf.zeros((3, 5)), wf.zeros((3, 4))
        ),
    ),
]


@pytest.mark.parametrize(("error", "call"), BAD, ids=range(len(BAD)))
def test_bad_arguments_are_named(error, call):
    with pytest.raises(error, match=":"):
        call()
