/* SPDX-License-Identifier: Apache-2.0
 *
 * The numerical contract of one QK-attention as plain C11 data.
 *
 * Shapes: q [B,Hq,Lq,D], k [B,Hkv,Lk,D], v [B,Hkv,Lk,Dv], row-major. docs/contract.md is the normative text; each
 * field names its clause group there. Enumerators and fields are only ever appended; a zero-initialised contract is
 * plain, unmasked attention without a norm, with scale 1/sqrt(D).
 */
#ifndef QKCTS_CONTRACT_H
#define QKCTS_CONTRACT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number formats (IEEE 754-2019 binary formats, bfloat16, and the 8-bit formats of the OCP OFP8 specification). The
 * first four store the tensors of a case, all of them may stand at a rounding point. */
typedef enum qkcts_format {
  QKCTS_BINARY64 = 1,
  QKCTS_BINARY32 = 2,
  QKCTS_BINARY16 = 3,
  QKCTS_BFLOAT16 = 4,
  QKCTS_E4M3FN = 5, /* ABI 1.2 */
  QKCTS_E5M2 = 6
} qkcts_format;

/* Extents of one case. G = q_heads / kv_heads is an integer >= 1. */
typedef struct qkcts_shape {
  int64_t batch;      /* B   */
  int64_t q_heads;    /* Hq  */
  int64_t kv_heads;   /* Hkv */
  int64_t q_len;      /* Lq  */
  int64_t k_len;      /* Lk  */
  int64_t head_dim;   /* D   */
  int64_t v_head_dim; /* Dv  */
} qkcts_shape;

/* QK-NORM: c = x - mean(x) if centred, else x; t = statistic(c); y = gain * c / root(t, eps) + bias. n = width. */
typedef enum qkcts_statistic {
  QKCTS_MEAN_SQUARE = 0, /* t = sum c^2 / n */
  QKCTS_SUM_SQUARE = 1   /* t = sum c^2     */
} qkcts_statistic;

/* QK-EPS: where epsilon enters the root d. */
typedef enum qkcts_root {
  QKCTS_INSIDE_ROOT = 0,  /* d = sqrt(t + eps)      */
  QKCTS_OUTSIDE_ROOT = 1, /* d = sqrt(t) + eps      */
  QKCTS_MAX_ROOT = 2,     /* d = max(sqrt(t), eps)  */
  QKCTS_MAX_INSIDE = 3    /* d = sqrt(max(t, eps))  */
} qkcts_root;

typedef enum qkcts_norm_axis {
  QKCTS_AXIS_HEAD = 0,      /* over D of one head, n = D                               */
  QKCTS_AXIS_FULL_WIDTH = 1 /* over all heads of one token, n = H*D (H = Hq or Hkv)     */
} qkcts_norm_axis;

/* QK-GAIN: the factor after the division. */
typedef enum qkcts_gain {
  QKCTS_GAIN_NONE = 0,
  QKCTS_GAIN_W = 1,         /* factor w     */
  QKCTS_GAIN_ONE_PLUS_W = 2 /* factor 1 + w */
} qkcts_gain;

/* Which axes a gain or bias tensor runs over; never guessed from sizes that may coincide. */
typedef enum qkcts_param_axes {
  QKCTS_AXES_NONE = 0,          /* no tensor          */
  QKCTS_AXES_SCALAR = 1,        /* [1]                */
  QKCTS_AXES_HEAD_DIM = 2,      /* [D]                */
  QKCTS_AXES_HEAD = 3,          /* [H]                */
  QKCTS_AXES_HEAD_HEAD_DIM = 4, /* [H, D]             */
  QKCTS_AXES_FULL_WIDTH = 5     /* [H*D], same memory order as [H, D] */
} qkcts_param_axes;

/* QK-VAR: how the variance may be formed; divides by n, never n - 1. One real number, two budgets. */
typedef enum qkcts_variance {
  QKCTS_VARIANCE_TWO_PASS = 0,        /* also Welford / Chan             */
  QKCTS_VARIANCE_ONE_PASS_CLIPPED = 1 /* max(0, mean x^2 - mean^2)       */
} qkcts_variance;

typedef struct qkcts_norm {
  uint32_t applied;   /* 0: identity, all other fields ignored */
  uint32_t center;    /* 0 or 1: subtract the mean             */
  uint32_t statistic; /* qkcts_statistic  */
  uint32_t root;      /* qkcts_root       */
  uint32_t axis;      /* qkcts_norm_axis  */
  uint32_t variance;  /* qkcts_variance   */
  uint32_t gain;      /* qkcts_gain       */
  uint32_t gain_axes; /* qkcts_param_axes, NONE iff gain is NONE      */
  uint32_t bias_axes; /* qkcts_param_axes, NONE: no bias              */
  uint32_t reserved;
  double eps; /* >= 0, finite; the binary64 value is meant    */
} qkcts_norm;

/* QK-ROPE */
typedef enum qkcts_rope_order {
  QKCTS_ROPE_NONE = 0,
  QKCTS_NORM_THEN_ROPE = 1,
  QKCTS_ROPE_THEN_NORM = 2
} qkcts_rope_order;

typedef enum qkcts_rope_pairing {
  QKCTS_HALF_SPLIT = 0, /* lane i is paired with lane i + R/2 of the rotated span */
  QKCTS_INTERLEAVED = 1 /* lane 2i is paired with lane 2i + 1                     */
} qkcts_rope_pairing;

typedef enum qkcts_rope_span {
  QKCTS_SPAN_FIRST = 0, /* lanes 0 .. R-1 are rotated   */
  QKCTS_SPAN_LAST = 1   /* lanes D-R .. D-1 are rotated */
} qkcts_rope_span;

/* (a, b) -> (a*cos - b*sin, b*cos + a*sin), cos and sin from tables [positions, R/2] given as inputs. */
typedef struct qkcts_rope {
  uint32_t order;   /* qkcts_rope_order   */
  uint32_t pairing; /* qkcts_rope_pairing */
  uint32_t span;    /* qkcts_rope_span    */
  uint32_t rotated; /* R, even, 2 <= R <= D; 0: R = D */
  double theta;     /* > 1; tables hold cos and sin of position * theta^(-2i/R), correctly rounded */
} qkcts_rope;

/* QK-SCALE: s = scale * <q,k> / temperature. */
typedef enum qkcts_scale_form {
  QKCTS_SCALE_INV_SQRT_HEAD_DIM = 0, /* 1 / sqrt(D)                         */
  QKCTS_SCALE_CONSTANT = 1,          /* value                               */
  QKCTS_SCALE_INV_SQRT_SCALAR = 2,   /* 1 / sqrt(value): query_pre_attn_scalar */
  QKCTS_SCALE_LEARNED_SCALAR = 3     /* the input tensor `scale`: [1], or as qkcts_logits says */
} qkcts_scale_form;

/* QK-BIAS: additive tensor [B or 1, Hq or 1, Lq, Lk] in the storage format; -inf hides the key. */
typedef enum qkcts_bias_order {
  QKCTS_BIAS_NONE = 0,
  QKCTS_BIAS_BEFORE_SOFTCAP = 1, /* cap(s + b) */
  QKCTS_BIAS_AFTER_SOFTCAP = 2   /* cap(s) + b */
} qkcts_bias_order;

typedef struct qkcts_score {
  uint32_t scale_form; /* qkcts_scale_form */
  uint32_t bias_order; /* qkcts_bias_order */
  double scale_value;  /* for CONSTANT and INV_SQRT_SCALAR, > 0 */
  double temperature;  /* T > 0; 0 means 1                      */
  double softcap;      /* c > 0: c*tanh(s/c); 0: none (QK-CAP)  */
} qkcts_score;

/* QK-MASK: query index q stands at key index q' = q + offset. Every given condition must hold for a key to be visible.
 */
typedef enum qkcts_alignment {
  QKCTS_TOP_LEFT = 0,           /* offset 0                */
  QKCTS_BOTTOM_RIGHT = 1,       /* offset Lk - Lq          */
  QKCTS_BOTTOM_RIGHT_VALID = 2, /* offset kv_len[b] - Lq   */
  QKCTS_OFFSET = 3              /* the field `offset`      */
} qkcts_alignment;

typedef enum qkcts_empty_row {
  QKCTS_EMPTY_ZERO = 0,   /* p = 0, o = 0                                             */
  QKCTS_EMPTY_NAN = 1,    /* p = NaN, o = NaN                                         */
  QKCTS_EMPTY_UNIFORM = 2 /* p = 1/Lk over all keys of the batch entry, o = mean of v  */
} qkcts_empty_row;        /* lse = -inf under ZERO and UNIFORM, NaN under NAN          */

typedef struct qkcts_mask {
  uint32_t causal;      /* 1: k <= q'                                        */
  uint32_t alignment;   /* qkcts_alignment, wherever q' is used              */
  uint32_t kv_lengths;  /* 1: k < kv_len[b], input `kv_len` int32 [B]        */
  uint32_t boolean;     /* 1: input `mask` bool [B or 1, Hq or 1, Lq, Lk], true = visible */
  uint32_t empty_row;   /* qkcts_empty_row                                   */
  uint32_t has_window;  /* 1: q' - window_left <= k <= q' + window_right     */
  int64_t window_left;  /* < 0: unlimited                                    */
  int64_t window_right; /* < 0: unlimited                                    */
  int64_t offset;       /* for QKCTS_OFFSET                                  */
} qkcts_mask;

/* Below: clauses of ABI 1.1. In JSON their keys stand in the section that the comment names. All of them at zero say
 * what ABI 1.0 said. */

/* QK-CLIP, QK-MULT (JSON q_norm, k_norm): y = clip_after(multiplier * norm(clip_before(x))), norm being the identity
 * where none is applied; clip_c(x) = min(max(x, -c), c). */
typedef struct qkcts_norm_range {
  double clip_before; /* c > 0; 0: none          */
  double multiplier;  /* > 0; 0 means 1          */
  double clip_after;  /* c > 0; 0: none          */
} qkcts_norm_range;

/* QK-ROPE (JSON rope) */
typedef enum qkcts_rope_sense {
  QKCTS_SENSE_POSITIVE = 0, /* (a, b) -> (a*cos - b*sin, b*cos + a*sin) */
  QKCTS_SENSE_NEGATIVE = 1  /* (a, b) -> (a*cos + b*sin, b*cos - a*sin) */
} qkcts_rope_sense;

typedef enum qkcts_rope_layout {
  QKCTS_LAYOUT_KEPT = 0,         /* every lane keeps its place                                              */
  QKCTS_LAYOUT_DEINTERLEAVED = 1 /* interleaved pair i of the span is left in its lanes i and i + R/2        */
} qkcts_rope_layout;

typedef enum qkcts_rope_angles {
  QKCTS_ANGLES_TABLE = 0,   /* cos and sin are exact inputs                                          */
  QKCTS_ANGLES_COMPUTED = 1 /* the runtime computes them from position ids; the tables are not given */
} qkcts_rope_angles;

/* Frequency of pair i before scaling: f_i = theta^(-2i/R). The formulas stand in docs/contract.md, QK-ROPE-10. */
typedef enum qkcts_rope_scaling {
  QKCTS_SCALING_NONE = 0,
  QKCTS_SCALING_LINEAR = 1,      /* f_i / factor                                              */
  QKCTS_SCALING_NTK = 2,         /* theta * factor^(R/(R-2)) in place of theta                 */
  QKCTS_SCALING_YARN = 3,        /* between f_i / factor and f_i by wavelength, over the index */
  QKCTS_SCALING_LLAMA3 = 4,      /* between f_i / factor and f_i by wavelength                 */
  QKCTS_SCALING_PROPORTIONAL = 5 /* f_i for i < floor(factor * R/2), 0 for the others          */
} qkcts_rope_scaling;

typedef enum qkcts_rope_tables {
  QKCTS_TABLES_SHARED = 0,  /* cos and sin are [P, R/2]: all heads turn alike                                   */
  QKCTS_TABLES_PER_HEAD = 1 /* cos and sin are [Hq, P, R/2]: head h of q and of k turns by table h; Hq = Hkv   */
} qkcts_rope_tables;

typedef struct qkcts_rotation {
  uint32_t sense;          /* qkcts_rope_sense   */
  uint32_t layout;         /* qkcts_rope_layout, DEINTERLEAVED only beside INTERLEAVED */
  uint32_t angles;         /* qkcts_rope_angles  */
  uint32_t scaling;        /* qkcts_rope_scaling */
  double factor;           /* > 0, beside a scaling; PROPORTIONAL: in (0, 1]                        */
  double original_length;  /* > 0, positions of the unscaled training; YARN, LLAMA3                 */
  double low;              /* YARN: beta_slow, LLAMA3: low_freq_factor                              */
  double high;             /* YARN: beta_fast, LLAMA3: high_freq_factor; > low                      */
  double attention_factor; /* > 0, multiplies cos and sin; 0 means 1                                */
  uint32_t untruncated;    /* YARN: 1: the ends of the ramp are not rounded to whole indices        */
  uint32_t tables;         /* qkcts_rope_tables (ABI 1.2)                                           */
} qkcts_rotation;

/* QK-SCALE, QK-ALIBI, QK-QTEMP (JSON score) */
typedef enum qkcts_scale_axes {
  QKCTS_SCALE_ONE = 0,     /* the input tensor `scale` is [1]         */
  QKCTS_SCALE_PER_HEAD = 1 /* the input tensor `scale` is [Hq]        */
} qkcts_scale_axes;

/* QK-ALIBI: added after the soft-cap; m = input tensor `alibi_slopes` [Hq], i' = query index + offset of the mask. */
typedef enum qkcts_alibi {
  QKCTS_ALIBI_NONE = 0,
  QKCTS_ALIBI_RELATIVE = 1,  /* m[h] * (j - i')     */
  QKCTS_ALIBI_SYMMETRIC = 2, /* -m[h] * |j - i'|    */
  QKCTS_ALIBI_LAST_KEY = 3   /* m[h] * (j - (Lk-1)) */
} qkcts_alibi;

/* QK-QTEMP: the scores of a query at position id p are multiplied by a factor. */
typedef enum qkcts_query_temperature {
  QKCTS_QUERY_TEMPERATURE_NONE = 0,
  QKCTS_QUERY_TEMPERATURE_LOG = 1,      /* 1 + alpha * ln(1 + floor((p + shift) / period))          */
  QKCTS_QUERY_TEMPERATURE_LOG_RATIO = 2 /* 1 + alpha * ln(max((p + shift) / period, 1)) (ABI 1.2)   */
} qkcts_query_temperature;

typedef struct qkcts_logits {
  double scale_exp_cap;       /* LEARNED_SCALAR: scale = exp(min(scale[h], cap)); 0: the tensor is the scale */
  uint32_t scale_axes;        /* qkcts_scale_axes, of LEARNED_SCALAR */
  uint32_t alibi;             /* qkcts_alibi                         */
  uint32_t query_temperature; /* qkcts_query_temperature             */
  uint32_t reserved;
  double query_alpha;  /* >= 0 */
  double query_period; /* integer >= 1 */
  double query_shift;  /* integer >= 0 */
} qkcts_logits;

/* QK-SINK, QK-BASE, QK-HIDDEN (JSON softmax) */
typedef enum qkcts_sink {
  QKCTS_SINK_NONE = 0,
  QKCTS_SINK_COLUMN = 1,    /* input `sink` [Hq]: a further logit per head, with v = 0; lse includes it */
  QKCTS_SINK_POST_SCALE = 2 /* o * 1 / (1 + e^(sink - lse)); p and lse exclude it                        */
} qkcts_sink;

typedef enum qkcts_base { QKCTS_BASE_E = 0, QKCTS_BASE_TWO = 1 } qkcts_base;

typedef enum qkcts_hidden_values {
  QKCTS_HIDDEN_FINITE = 0,    /* nothing is said of NaN or infinities in k and v that a row does not see    */
  QKCTS_HIDDEN_EXCLUDED = 1,  /* they never reach a row that does not see them                              */
  QKCTS_HIDDEN_PROPAGATED = 2 /* ABI 1.2: a hidden value takes part with weight 0, and 0 times NaN is NaN   */
} qkcts_hidden_values;

typedef struct qkcts_softmax {
  uint32_t sink;          /* qkcts_sink                                 */
  uint32_t base;          /* qkcts_base of the weights                  */
  uint32_t lse_base;      /* qkcts_base of the log-sum-exp as returned  */
  uint32_t hidden_values; /* qkcts_hidden_values                        */
} qkcts_softmax;

/* QK-MASK (JSON mask): further conditions, and the one union. */
typedef struct qkcts_regions {
  int64_t chunk;      /* > 0: floor(j / chunk) = floor(i' / chunk); 0: none                              */
  uint32_t documents; /* 1: q_document_ids[b, i] = k_document_ids[b, j], inputs int32 [B,Lq], [B,Lk]     */
  uint32_t prefix;    /* 1: causal holds too where j < prefix_len[b], input int32 [B]                    */
} qkcts_regions;

/* QK-HEADS (JSON heads) */
typedef enum qkcts_head_mapping {
  QKCTS_HEADS_BLOCK = 0, /* query head h uses key/value head floor(h / G) */
  QKCTS_HEADS_TILE = 1   /* query head h uses key/value head h mod Hkv    */
} qkcts_head_mapping;

typedef struct qkcts_heads {
  uint32_t mapping; /* qkcts_head_mapping */
  uint32_t reserved;
} qkcts_heads;

/* Below: clauses of ABI 1.2, again at zero what was said before. */

/* QK-PROJ (JSON projection): q = norm(x) W + b for inputs x, W and b in place of an input q, and k likewise. */
typedef enum qkcts_projection_form {
  QKCTS_PROJECTION_NONE = 0,  /* q and k are inputs                                                      */
  QKCTS_PROJECTION_LINEAR = 1 /* q_x [B,Lq,Eq], q_weight [Eq, Hq*D]; k_x [B,Lk,Ek], k_weight [Ek, Hkv*D] */
} qkcts_projection_form;

typedef struct qkcts_projection {
  uint32_t form;      /* qkcts_projection_form */
  uint32_t bias;      /* 1: + q_weight_bias [Hq*D], + k_weight_bias [Hkv*D]                                     */
  qkcts_norm q_input; /* JSON q_input_norm: norm of each row of q_x over its E entries; axis is ignored, gain   */
  qkcts_norm k_input; /* and bias are FULL_WIDTH [E] or SCALAR; tensors q_x_gain, q_x_bias, k_x_gain, k_x_bias  */
} qkcts_projection;

/* QK-ROUND (JSON rounding): points where a value is rounded (roundTiesToEven) to a format before it is used. Each
 * member is a qkcts_format; 0: not rounded. In JSON the members of q are q_projection, q_norm_root, q_norm_reciprocal,
 * q_norm_unit, q_norm, q_rope_product and q_rope; those of k and v likewise. */
typedef struct qkcts_vector_rounding {
  uint32_t projection;   /* after the projection and its bias (not of v)                                  */
  uint32_t root;         /* the root d of the norm                                                        */
  uint32_t reciprocal;   /* 1/d; the centred entry is multiplied by it                                     */
  uint32_t unit;         /* the entry after the division, before the gain                                 */
  uint32_t norm;         /* the stage q_norm: after gain, bias, multiplier and clamps                     */
  uint32_t rope_product; /* each of the four products of a rotation                                       */
  uint32_t rope;         /* rotated lanes after the sum                                                   */
  uint32_t reserved;
} qkcts_vector_rounding;

/* Of the norm before a projection. In JSON q_input_norm_unit and q_input_norm, and of k likewise. */
typedef struct qkcts_input_rounding {
  uint32_t unit; /* the entry after the division, before the gain  */
  uint32_t norm; /* the entry that is multiplied with the matrix   */
} qkcts_input_rounding;

typedef struct qkcts_rounding {
  qkcts_vector_rounding q, k, v;         /* of v: root, reciprocal, unit, norm                                       */
  uint32_t scaled_q;                     /* q after norm and rotation times everything that multiplies the scores     */
  uint32_t scores;                       /* the stage scores                                                          */
  uint32_t capped;                       /* the stage capped                                                          */
  uint32_t probs;                        /* the stage probs; the row sum is that of the unrounded weights             */
  uint32_t output;                       /* the stage output                                                          */
  uint32_t saturate;                     /* 1: what would overflow at a point becomes the largest finite number       */
  uint32_t product;                      /* <q,k> before what multiplies it; not beside scaled_q                      */
  qkcts_input_rounding q_input, k_input; /* x^ of the projections of q and k                                  */
  uint32_t reserved;
} qkcts_rounding;

typedef struct qkcts_contract {
  uint32_t struct_size; /* bytes of this struct known to the writer */
  uint32_t version;     /* QKCTS_CONTRACT_VERSION                   */
  qkcts_norm q_norm;    /* norm of q; every field may differ from that of k */
  qkcts_norm k_norm;
  qkcts_rope rope;
  qkcts_score score;
  qkcts_mask mask;
  qkcts_norm_range q_range; /* ABI 1.1 from here on */
  qkcts_norm_range k_range;
  qkcts_rotation rotation;
  qkcts_logits logits;
  qkcts_softmax softmax;
  qkcts_regions regions;
  qkcts_heads heads;
  qkcts_norm v_norm; /* ABI 1.2 from here on: QK-VNORM, over the Dv lanes of a value (full_width: Hkv*Dv) */
  qkcts_norm_range v_range;
  qkcts_projection projection;
  qkcts_rounding rounding;
} qkcts_contract;

#define QKCTS_CONTRACT_VERSION 1u

/* Stages that may be observed (QK-STAGE). Bit i of a stage set is stage i. Those of ABI 1.2 have the last numbers; the
 * projections are evaluated first, v_norm beside the norms. */
typedef enum qkcts_stage {
  QKCTS_STAGE_Q_NORM = 0,  /* [B,Hq,Lq,D]   */
  QKCTS_STAGE_K_NORM = 1,  /* [B,Hkv,Lk,D]  */
  QKCTS_STAGE_Q_ROPE = 2,  /* [B,Hq,Lq,D]   */
  QKCTS_STAGE_K_ROPE = 3,  /* [B,Hkv,Lk,D]  */
  QKCTS_STAGE_SCORES = 4,  /* [B,Hq,Lq,Lk]  */
  QKCTS_STAGE_CAPPED = 5,  /* [B,Hq,Lq,Lk]  after bias and soft-cap, in the contract's order */
  QKCTS_STAGE_MASKED = 6,  /* [B,Hq,Lq,Lk]  -inf at hidden keys */
  QKCTS_STAGE_PROBS = 7,   /* [B,Hq,Lq,Lk]  */
  QKCTS_STAGE_LSE = 8,     /* [B,Hq,Lq]     natural logarithm, or as qkcts_softmax says */
  QKCTS_STAGE_OUTPUT = 9,  /* [B,Hq,Lq,Dv]  */
  QKCTS_STAGE_Q_PROJ = 10, /* [B,Hq,Lq,D]  ABI 1.2 */
  QKCTS_STAGE_K_PROJ = 11, /* [B,Hkv,Lk,D]  */
  QKCTS_STAGE_V_NORM = 12, /* [B,Hkv,Lk,Dv] */
  QKCTS_STAGE_COUNT = 13
} qkcts_stage;

#ifdef __cplusplus
}
#endif
#endif
