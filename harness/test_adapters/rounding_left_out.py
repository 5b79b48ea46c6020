# SPDX-License-Identifier: Apache-2.0
"""adapters/python/numpy_attention.py with one mistake: it claims rounding points and rounds at none of them."""
import numpy_attention
import numpy_rounding
import qkcts_adapter

numpy_rounding.nearest = lambda x, form, saturate=False: x
qkcts_adapter.serve(numpy_attention.DESCRIPTION, numpy_attention.run)
