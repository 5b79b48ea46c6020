# SPDX-License-Identifier: Apache-2.0
"""A NumPy attention with RMS-normalised queries and keys, judged by the corpora of this project.

usage: rms_rope_attention.py CORPUS [--eps-outside-root]

Computes every case whose contract it implements: RMS per head with a gain, then half-split rotary embedding by tables,
scale 1/sqrt(D), causal mask, softmax. Prints one line per case and stage, and ends with 1 if one failed. The option
makes the mistake that the case `eps_edge` is there for: 1/(sqrt(mean) + eps) in place of 1/sqrt(mean + eps)."""

import json
import sys

import h5py
import numpy

from corpus import cases, judged, numbers, rounded, text


def implemented(contract):
    """Has the contract no clause but those of this file?"""
    norm = {"kind": "rms", "statistic": "mean_square", "center": False, "axis": "head", "root": "inside_root",
            "gain": "w", "gain_axes": "head_dim", "bias_axes": "none"}
    wanted = {"q_norm": norm, "k_norm": norm,
              "rope": {"order": "norm_then_rope", "pairing": "half_split", "rotated": None},
              "score": {"scale_form": "inv_sqrt_head_dim", "bias_order": "none", "softcap": None, "temperature": 1},
              "mask": {"causal": True, "alignment": "bottom_right", "boolean": False, "kv_lengths": False,
                       "window": None}}
    free = {"q_norm": {"eps"}, "k_norm": {"eps"}, "rope": {"theta"}, "mask": {"empty_row"}, "score": set()}
    about = {"schema", "name", "title", "sources", "model"}
    return set(contract) - about == set(wanted) and all(
        {key: value for key, value in contract[part].items() if key not in free[part]} == wanted[part]
        for part in wanted)


def rms_norm(x, gain, eps, eps_outside_root):
    mean = numpy.mean(x * x, axis=-1, keepdims=True, dtype=x.dtype)
    root = numpy.sqrt(mean) + eps if eps_outside_root else numpy.sqrt(mean + eps)
    return x / root * gain


def rope(x, cos, sin, position_ids):
    half = x.shape[-1] // 2
    c, s = cos[position_ids][:, None], sin[position_ids][:, None]  # [B, 1, L, D/2]
    a, b = x[..., :half], x[..., half:]
    return numpy.concatenate([a * c - b * s, b * c + a * s], axis=-1)


def attention(case, contract, eps_outside_root):
    """Stage name -> numbers before they are stored."""
    inputs = {name: numbers(tensor) for name, tensor in case["inputs"].items()}
    real = numpy.float64 if text(case.attrs["format"]) == "binary64" else numpy.float32
    inputs = {name: tensor.astype(real) if tensor.dtype.kind == "f" else tensor for name, tensor in inputs.items()}
    stages = {}
    for side in ("q", "k"):
        stages[side + "_norm"] = rms_norm(inputs[side], inputs[side + "_gain"], real(contract[side + "_norm"]["eps"]),
                                          eps_outside_root)
        stages[side + "_rope"] = rope(stages[side + "_norm"], inputs["cos"], inputs["sin"],
                                      inputs[side + "_position_ids"])
    q, k, v = stages["q_rope"], stages["k_rope"], inputs["v"]
    queries_per_key = q.shape[1] // k.shape[1]
    k, v = numpy.repeat(k, queries_per_key, axis=1), numpy.repeat(v, queries_per_key, axis=1)
    stages["scores"] = q @ k.swapaxes(-1, -2) * (real(1) / numpy.sqrt(real(q.shape[-1])))
    q_len, k_len = q.shape[2], k.shape[2]
    visible = numpy.arange(k_len) <= numpy.arange(q_len)[:, None] + (k_len - q_len)
    stages["masked"] = numpy.where(visible, stages["scores"], real(-numpy.inf))
    largest = numpy.max(stages["masked"], axis=-1, keepdims=True)
    weights = numpy.exp(stages["masked"] - largest)
    total = numpy.sum(weights, axis=-1, keepdims=True)
    stages["probs"] = weights / total
    stages["lse"] = (largest + numpy.log(total))[..., 0]
    stages["output"] = stages["probs"] @ v
    return stages


def main(path, eps_outside_root=False):
    corpus = h5py.File(path, "r")
    failed = computed = 0
    for slug, case in sorted(cases(corpus).items()):
        contract = json.loads(text(corpus["contracts"][text(case.attrs["contract"])].attrs["json"]))
        if not implemented(contract) or case.attrs["shape"][3] > case.attrs["shape"][4]:  # rows without keys
            continue
        results = attention(case, contract, eps_outside_root)
        computed += 1
        for name, stage in case["stages"].items():
            got = rounded(results[name], text(stage.attrs["format"]))
            passes, ratio = judged(got, stage, 0)  # the first profile is the plain one
            failed += not passes.all()
            print("%s  %-7s %s: %d of %d elements fail, largest error/budget %.3g" % (
                "pass" if passes.all() else "FAIL", name, slug, (~passes).sum(), passes.size, ratio.max()))
    print("%d cases computed, %d stages failed" % (computed, failed))
    return 0 if computed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--eps-outside-root" in sys.argv[2:]))
