// SPDX-License-Identifier: Apache-2.0
// What a scheduler tells whoever connects it to other nodes. sched/ knows nothing of networks; the
// runtime introduces the two.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <vector>

#include "os/futex.hpp"
#include "sched/next_take.hpp"
#include "strata/detail/worker.hpp"
#include "strata/route.hpp"

namespace strata::detail {

class neighbourhood {
 public:
  // A worker finds nothing to do on this node and is about to search, or to sleep: work should be
  // fetched from elsewhere. Called often; must be cheap when that is under way already.
  virtual void want_work() noexcept = 0;
  // A worker that had nothing to do is about to begin a token. There may be no other: the next one
  // can be fetched while it runs.
  virtual void begins_token() noexcept = 0;

  // A task for w from where one can be had at once, by the thread that runs w, which has nothing to
  // do; null: none. `after` is set where the next one may lie beside it.
  [[nodiscard]] virtual task* take(worker& w, next_take& after) noexcept = 0;
  // There is something that only take() finds: not all workers may sleep.
  [[nodiscard]] virtual bool holds_something() const noexcept = 0;

  // A worker that has nothing else to do looks whether something has arrived; true if so. Between
  // two calls of begin_polling() and end_polling() nobody else needs to be woken for it.
  virtual bool poll() noexcept = 0;
  // A worker between two tasks, while *workers_look.
  virtual void look() noexcept = 0;
  virtual void begin_polling() noexcept = 0;
  virtual void end_polling() noexcept = 0;

  // A worker's thread with nothing to do sleeps here while `own` holds `expected`, and handles
  // meanwhile what arrives, as a receiver would; false: that cannot be done, or no longer. Whoever
  // changes `own` wakes those who sleep on it, and rouses the stand-in. May return early. One
  // thread at a time.
  virtual bool stand_in(os::futex_word& own, std::uint32_t expected) noexcept = 0;
  virtual void rouse_stand_in() noexcept = 0;
  // Nobody does any more.
  virtual void dismiss_stand_in() noexcept = 0;

  // w has shared tasks while there was a reason: hand some over.
  virtual void feed(worker& w) noexcept = 0;

  // A worker that polled is about to sleep.
  virtual void worker_sleeps() noexcept = 0;
  // All do, or are about to: nobody here polls any more. Also while something waits for a deadline.
  // Called by the last one, or the last few.
  virtual void all_sleep() noexcept = 0;
  // And nothing moves on this node, whoever is in a call that blocks or waits for a time to come.
  virtual void node_is_idle() noexcept = 0;

  // The computation fails, for the first time since the last failure was settled. Called with the
  // failure's lock: nothing of it may be asked.
  virtual void computation_failed(const std::exception_ptr& error) noexcept = 0;

  // Before what nobody was told of is reported: a loss that the launcher tells of is not, which may
  // take a moment to be known.
  virtual void leave_loss_to_launcher() noexcept = 0;

  [[nodiscard]] virtual route way_to(std::uint16_t node) const = 0;
  // By node: route::cost_ns of what `from` sends there; negative: it is not there. Empty: `from` is
  // not.
  [[nodiscard]] virtual std::vector<std::int64_t> costs_from(std::uint16_t from) = 0;
  // Whether it takes part now; and whether it ever has, or is just coming.
  [[nodiscard]] virtual bool is_member(std::uint16_t node) const noexcept = 0;
  [[nodiscard]] virtual bool is_known(std::uint16_t node) const noexcept = 0;

  // Not 0: another node waits for work, or is to find some without asking.
  const std::atomic<std::uint32_t>* hungry = nullptr;
  // Workers are to look for messages between two tasks.
  const std::atomic<bool>* workers_look = nullptr;

 protected:
  ~neighbourhood() = default;
};

}  // namespace strata::detail
