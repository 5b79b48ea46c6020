# SPDX-License-Identifier: Apache-2.0
"""The smallest adapter in Python: plain attention in NumPy, binary32 alone. Copy it and change what it says."""
import numpy
import qkcts_adapter

DESCRIPTION = {
    "name": "template", "version": "1", "formats": ["binary32"], "stages": ["output"], "profile": {"binary32": "f32"},
    "supports": {"q_norm.kind": ["none"], "k_norm.kind": ["none"], "rope.order": ["none"], "score.softcap": [None],
                 "score.scale_form": ["inv_sqrt_head_dim"], "score.temperature": [1], "score.bias_order": ["none"],
                 "mask.causal": [False], "mask.window": [None], "mask.boolean": [False], "mask.kv_lengths": [False]}}


def run(case):
    q, k, v = case.numbers("q"), case.numbers("k"), case.numbers("v")
    group = case.shape.q_heads // case.shape.kv_heads
    k, v = numpy.repeat(k, group, axis=1), numpy.repeat(v, group, axis=1)
    scores = q @ k.swapaxes(-1, -2) / numpy.sqrt(numpy.float32(case.shape.head_dim))
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    case.implementation = "numpy " + numpy.__version__
    return {"output": weights / weights.sum(axis=-1, keepdims=True) @ v}


if __name__ == "__main__":
    qkcts_adapter.serve(DESCRIPTION, run)
