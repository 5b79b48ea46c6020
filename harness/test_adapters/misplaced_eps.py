# SPDX-License-Identifier: Apache-2.0
"""adapters/python/numpy_attention.py with one mistake: epsilon outside of the root, whatever the contract says."""
import numpy_attention
import qkcts_adapter

right_norm = numpy_attention.norm


def wrong_norm(x, terms, gain, bias):
    return right_norm(x, {**terms, "root": "outside_root"}, gain, bias)


numpy_attention.norm = wrong_norm
qkcts_adapter.serve(numpy_attention.DESCRIPTION, numpy_attention.run)
