// SPDX-License-Identifier: Apache-2.0
#include "pthread/own_state.hpp"

#include <pthread.h>

#include "pthread/process_runtime.hpp"
#include "pthread/signals.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail::posix {
namespace {

bool has_mask_of_its_own() noexcept { return blocks_signals(this_worker().owner); }

const sigset_t& own_mask_now() noexcept {
  record* const r = self_if_any();
  if (r == nullptr) return mask_at_start();
  end_left_handlers(*r);
  return r->blocked;
}

}  // namespace

sigset_t mask_of_caller() noexcept {
  if (has_mask_of_its_own()) return own_mask_now();
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

own_state::own_state() noexcept : changed_(has_mask_of_its_own()) {
  if (changed_) pthread_sigmask(SIG_SETMASK, &own_mask_now(), &before_);
}

own_state::~own_state() {
  if (changed_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace strata::detail::posix
