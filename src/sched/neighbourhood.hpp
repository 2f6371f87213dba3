// SPDX-License-Identifier: Apache-2.0
// What a scheduler tells whoever connects it to other nodes. sched/ knows nothing of networks; the
// runtime introduces the two.
#pragma once
#include <atomic>
#include <exception>

#include "strata/detail/worker.hpp"

namespace strata::detail {

class neighbourhood {
 public:
  // A worker finds nothing to do on this node and is about to search, or to sleep: work should be
  // fetched from elsewhere. Called often; must be cheap when that is under way already.
  virtual void want_work() noexcept = 0;

  // A worker that has nothing else to do looks whether something has arrived; true if so. Between
  // two calls of begin_polling() and end_polling() nobody else needs to be woken for it.
  virtual bool poll() noexcept = 0;
  virtual void begin_polling() noexcept = 0;
  virtual void end_polling() noexcept = 0;

  // w has shared tasks while another node was hungry: hand some over.
  virtual void feed(worker& w) noexcept = 0;

  // Nothing moves on this node. Called by the last worker before it sleeps.
  virtual void node_is_idle() noexcept = 0;

  // The computation fails, for the first time since the last failure was settled. Called with the
  // failure's lock: nothing of it may be asked.
  virtual void computation_failed(const std::exception_ptr& error) noexcept = 0;

  // True while another node waits for work.
  const std::atomic<bool>* hungry = nullptr;
  // Workers look for messages between two tasks (reception by polling).
  bool poll_between_tasks = false;

 protected:
  ~neighbourhood() = default;
};

}  // namespace strata::detail
