"""Optimizers, learning-rate schedules, gradient clipping: how parameters follow their gradients."""

import typing as _typing

from weft.optim.adagrad import Adagrad as Adagrad
from weft.optim.adam import Adam as Adam, AdamW as AdamW
from weft.optim.average import EMA as EMA
from weft.optim.clipping import (
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
)
from weft.optim.lion import Lion as Lion
from weft.optim.one_cycle import OneCycleLR as OneCycleLR
from weft.optim.optimizer import Optimizer as Optimizer
from weft.optim.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from weft.optim.rmsprop import RMSprop as RMSprop
from weft.optim.schedule import (
    ConstantLR as ConstantLR,
    CosineAnnealingLR as CosineAnnealingLR,
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
    ExponentialLR as ExponentialLR,
    LambdaLR as LambdaLR,
    LinearLR as LinearLR,
    LRScheduler as LRScheduler,
    MultiStepLR as MultiStepLR,
    PolynomialLR as PolynomialLR,
    SequentialLR as SequentialLR,
    StepLR as StepLR,
)
from weft.optim.sgd import SGD as SGD
from weft.tensor.elsewhere import (
    OPTIM as _NAMES,
    OPTIM_ADVICE as _ADVICE,
    no_name as _no_name,
)

if not _typing.TYPE_CHECKING:  # a checker should see what is there

    def __getattr__(name):
        raise _no_name("weft.optim", name, _NAMES, _ADVICE)
