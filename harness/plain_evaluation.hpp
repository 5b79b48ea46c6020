// SPDX-License-Identifier: Apache-2.0
// The yardstick beside Delta: what a plain evaluation of the same case is off by that stores every stage in the format
// of the case before it goes on, as a framework does that calls one operator after the other. It is the bundled scalar
// kernel under the case's contract with a rounding point at each stage; the judge measures it as it measures an
// adapter. It decides nothing.
#pragma once

#include "harness/bundled_kernel.hpp"
#include "harness/case_run.hpp"

namespace qkcts {

class PlainEvaluation {
 public:
  // Throws AdapterError if the scalar kernel is not beside the program.
  PlainEvaluation();

  // Sets StageResult::plain of every stage that was judged.
  void add(CaseResult& result, const GoldenCase& golden) const;

 private:
  BundledKernel scalar_;
};

// Rounding points of the contract stay; where a stage has none, it is rounded to the format of the case. In binary64
// and binary32 nothing is added: they are the arithmetic.
qkcts_rounding stored_stages(qkcts_rounding rounding, Format format);

}  // namespace qkcts
