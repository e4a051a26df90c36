"""Whole workloads, said once in every peer's own words: elementwise to ResNet-18.

`numbers` makes data and first parameters, the same for everyone; `with_torch`, `with_jax`,
`with_onnx` and `with_weft` each give `cases(mode)` for a worker process. Parameters have PyTorch's
names and layouts (`weight` of a linear layer is (out, in), of a convolution OIHW).
"""
