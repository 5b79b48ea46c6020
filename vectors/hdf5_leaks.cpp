// SPDX-License-Identifier: Apache-2.0
// Part of every test program that reads damaged files: libhdf5 1.10.8 keeps a few hundred bytes for good where it
// refuses one, and LeakSanitizer would name them ours.
extern "C" const char*
__lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" const char*
__lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
  return "leak:libhdf5";
}
