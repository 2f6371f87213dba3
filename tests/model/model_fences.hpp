// SPDX-License-Identifier: Apache-2.0
// Stand for asymmetric_fences. Relacy knows no membarrier, but at the moment of a heavy() the
// frequent side has executed at least a full fence; so here every light() is one.
#pragma once
#include "relacy_atomic.hpp"

namespace strata::model {

inline void full_fence(const code_place& at = {}) {
  rl::atomic_thread_fence(rl::mo_seq_cst, at.info);
}

struct model_fences {
  static void light(const code_place& at = {}) { full_fence(at); }
  static void full(const code_place& at = {}) { full_fence(at); }
  static void heavy(const code_place& at = {}) { full_fence(at); }
  static bool available() { return true; }
};

// A kernel without membarrier.
struct unavailable_fences {
  static void light() {}
  static void full(const code_place& at = {}) { full_fence(at); }
  static void heavy(const code_place& at = {}) { full_fence(at); }
  static bool available() { return false; }
};

// Mutation: the frequent side orders nothing, and nobody knows.
struct one_sided_fences : unavailable_fences {
  static bool available() { return true; }
};

}  // namespace strata::model
