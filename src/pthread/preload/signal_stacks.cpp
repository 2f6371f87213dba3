// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/signal_stacks.hpp"

#include <pthread.h>

#include <cstdlib>

#include "pthread/fork.hpp"
#include "pthread/wait.hpp"
#include "sched/place.hpp"
#include "strata/pthread.h"

namespace strata::preload {
namespace {

namespace posix = detail::posix;

// Of this OS thread: what it had before threads of ours set others.
struct known_stack {
  stack_t what;
  bool is_known;
};
thread_local constinit known_stack stack_of_worker __attribute__((tls_model("initial-exec"))){};

[[gnu::noinline]] void note_own(const stack_t& now) noexcept {
  if (!stack_of_worker.is_known) stack_of_worker = {now, true};
}
[[gnu::noinline]] void put_back_own() noexcept {
  (void)sigaltstack(&stack_of_worker.what, nullptr);
}

// At the end of a thread that has set one, with the destructors of its values.
pthread_key_t key_of_end() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    if (strata_pthread_key_create(&made, [](void*) { put_back_own(); }) != 0) std::abort();
    return made;
  }();
  return key;
}

}  // namespace

int set_signal_stack(const stack_t* stack, stack_t* before) {
  const detail::worker& w = detail::this_worker();
  const bool is_ours =
      w.owner != nullptr && static_cast<const detail::place&>(w).current != nullptr;
  if (stack == nullptr || !is_ours || posix::is_in_child_of_vfork())
    return sigaltstack(stack, before);
  stack_t told{};
  if (sigaltstack(stack, &told) != 0) return -1;
  const posix::kept_errno keep;
  note_own(told);
  if ((stack->ss_flags & SS_DISABLE) != 0) {
    put_back_own();
  } else {
    detail::place& here = detail::this_place();
    here.current->pinned_to = &here;
    const pthread_key_t key = key_of_end();
    if (strata_pthread_getspecific(key) == nullptr)
      (void)strata_pthread_setspecific(key, here.current);
  }
  if (before != nullptr) *before = told;
  return 0;
}

}  // namespace strata::preload
