# SPDX-License-Identifier: Apache-2.0
"""QK-SPECIAL: the twin with NaN and infinities in its inputs. mpmath has them as IEEE 754 does; what comes out in this one
way of computing must be among what the reference lets pass, and all that it judges as numbers must be those numbers."""
import mpmath
from mpmath import mpf

from slow_twin_attention import Twin, number

SPECIAL, NOT_FINITE, FREE = 4, 5, 6


def is_special(x):
    return mpmath.isnan(x) or mpmath.isinf(x)


class SpecialTwin(Twin):
    def row(self, h, s, keys, v):
        """The weights of a special row relative to its maximum: without a shift exp(inf) / inf were no NaN at all keys."""
        propagated = self.contract.get("softmax", {}).get("hidden_values", "finite") == "propagated"
        first = len(self.stages["output"])
        if keys and any(is_special(s[j]) for j in keys):
            top = mpmath.nan if any(mpmath.isnan(s[j]) for j in keys) else max(s[j] for j in keys)
            e = {j: mpmath.exp(s[j] - top) for j in keys}
            p = [e[j] / mpmath.fsum(e.values()) if j in keys else mpf(0) for j in range(self.Lk)]
            self.stages["probs"] += p
            self.stages["lse"].append(top + mpmath.log(mpmath.fsum(e.values())))
            self.put_output([mpmath.fsum(p[j] * v[j][d] for j in keys) for d in range(self.Dv)])
            for statistic in self.statistics.values():
                statistic.append(mpmath.nan)
        else:
            super().row(h, s, keys, v)
        if not propagated:
            return
        for d in range(self.Dv):
            for j in range(self.Lk):
                if j not in keys:
                    self.stages["output"][first + d] += 0 * v[j][d]


def fits(z, stored):
    """Is the class that the twin found one that passes? None: the element is a number, to be compared as such."""
    rule, due = stored[3], number(stored[1])
    if rule == FREE:
        return True
    if rule == NOT_FINITE:
        return is_special(z)
    if rule == SPECIAL:
        return mpmath.isnan(z) or (mpmath.isinf(z) and z == mpf(due))
    return None
