#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times torch.nn.functional.scaled_dot_product_attention on the shapes of cuda_time, one JSON object a line.

Same rules: events, the median of 60 calls over 4 sets of inputs, causal. Decode has one query that sees every key, so it needs no mask there.
"""
import json
import statistics
import sys

try:
    import torch
except ImportError:
    print("torch_time: no PyTorch here, nothing to compare with", file=sys.stderr)
    sys.exit(5)

INPUT_SETS, WARM_CALLS, TIMED_CALLS = 4, 8, 60

# name, format, (batch, query heads, key heads, queries, keys, width)
WORKLOADS = [
    ("prefill_bf16", torch.bfloat16, (1, 32, 8, 2048, 2048, 128)),
    ("prefill_f16", torch.float16, (1, 32, 8, 2048, 2048, 128)),
    ("prefill_f32", torch.float32, (1, 8, 8, 1024, 1024, 128)),
    ("decode_bf16", torch.bfloat16, (8, 32, 8, 1, 8192, 128)),
]


def draw(form, shape):
    batch, q_heads, kv_heads, q_len, k_len, width = shape
    make = lambda heads, length: torch.randn(batch, heads, length, width, dtype=form, device="cuda")
    group = q_heads // kv_heads
    # SDPA without enable_gqa (older versions) wants as many heads of k and v as of q; copied before the clock runs.
    wide = lambda x: x.repeat_interleave(group, dim=1)
    return make(q_heads, q_len), wide(make(kv_heads, k_len)), wide(make(kv_heads, k_len))


def measure(name, form, shape):
    sets = [draw(form, shape) for _ in range(INPUT_SETS)]
    times = []
    for i in range(WARM_CALLS + TIMED_CALLS):
        q, k, v = sets[i % INPUT_SETS]
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=shape[3] > 1)
        end.record()
        end.synchronize()
        if i >= WARM_CALLS:
            times.append(begin.elapsed_time(end))
    times.sort()
    print(json.dumps({"workload": name, "kernel": "torch " + torch.__version__ + " scaled_dot_product_attention",
                      "median_ms": statistics.median(times), "p10_ms": times[len(times) // 10],
                      "p90_ms": times[len(times) * 9 // 10], "calls": TIMED_CALLS, "input_sets": INPUT_SETS}), flush=True)


def main():
    if not torch.cuda.is_available():
        print("torch_time: this PyTorch sees no CUDA device", file=sys.stderr)
        return 5
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    for workload in WORKLOADS:
        measure(*workload)
    return 0


if __name__ == "__main__":
    sys.exit(main())
