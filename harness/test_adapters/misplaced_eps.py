# SPDX-License-Identifier: Apache-2.0
"""adapters/python/numpy_attention.py with one mistake: epsilon outside of the root, whatever the contract says."""
import numpy_attention
import numpy_vectors
import qkcts_adapter

right_norm = numpy_vectors.norm


def wrong_norm(x, terms, *rest):
    return right_norm(x, lambda key: "outside_root" if key == "root" else terms(key), *rest)


numpy_vectors.norm = wrong_norm
qkcts_adapter.serve(numpy_attention.DESCRIPTION, numpy_attention.run)
