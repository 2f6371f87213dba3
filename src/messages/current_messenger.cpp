// SPDX-License-Identifier: Apache-2.0
#include "messages/current_messenger.hpp"

#include <atomic>
#include <memory>

#include "messages/messenger.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"

namespace strata::messages {

// A strata::runtime brings its own. That of threads which were made outside any has none, since who
// starts it (pthread/process_runtime.hpp) knows nothing of messages: the first who asks makes it,
// for as long as the process.
messenger* messenger_of(const strata::detail::worker& w) {
  strata::detail::scheduler* const home = w.owner;
  if (home == nullptr) return nullptr;
  const std::atomic_ref<messenger*> known(home->messenger);
  // Acquire: the messenger. Partner: the exchange below; a runtime's is there before anybody brings
  // work to its workers.
  messenger* seen = known.load(std::memory_order_acquire);
  if (seen != nullptr) [[likely]]
    return seen;
  auto mine = std::make_unique<messenger>();
  // False: another thread has just made one.
  if (!known.compare_exchange_strong(seen, mine.get(), std::memory_order_acq_rel)) return seen;
  return mine.release();
}

messenger* messenger_here() { return messenger_of(strata::detail::this_worker()); }

messenger& messenger_or_refusal(const strata::detail::worker& w, const char* refusal) {
  messenger* const here = messenger_of(w);
  if (here == nullptr) throw misuse_error(refusal);
  return *here;
}

messenger& messenger_or_refusal(const char* refusal) {
  return messenger_or_refusal(strata::detail::this_worker(), refusal);
}

}  // namespace strata::messages
