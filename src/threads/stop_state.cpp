// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/stop_state.hpp"

#include <mutex>
#include <optional>

#include "strata/detail/parking.hpp"
#include "strata/detail/worker.hpp"
#include "strata/thread.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail {
namespace {

// The lock is held for some instructions, in which no timer may take the thread away.
class full_stop_state : public stop_state {
 public:
  bool request_stop() noexcept;
  void announce_stop() noexcept;
  [[nodiscard]] bool is_only_announced() const noexcept {
    return announced_.load(std::memory_order_relaxed);
  }
  outcome add_node(stop_node& n) noexcept;
  void remove_node(stop_node& n) noexcept;
  std::stop_token standard_token();
  void forget_standard_source() noexcept;

 private:
  struct locked {
    explicit locked(full_stop_state& s) noexcept : lock(s.lock_) {}
    const uninterrupted guard;
    std::unique_lock<spin_lock> lock;
  };
  // What a thread waits for that ends a callback.
  struct other_call {
    full_stop_state* state;
    stop_node* node;
  };
  static bool is_in(void* call);
  stop_node* take_first() noexcept;
  void remove_from_list(stop_node& n) noexcept;

  spin_lock lock_;
  // With the lock:
  stop_node* first_ = nullptr;
  stop_node* last_ = nullptr;
  thread::id requester_;
  bool awaited_ = false;  // by others, for the callback that runs
  std::optional<std::stop_source> standard_;
  std::atomic<bool> announced_{false};  // and not requested; before requested_ says so
  // The callback that runs. Written with the lock.
  std::atomic<stop_node*> running_{nullptr};
};

full_stop_state& all_of(stop_state& s) noexcept { return static_cast<full_stop_state&>(s); }

void full_stop_state::remove_from_list(stop_node& n) noexcept {
  (n.previous != nullptr ? n.previous->next : first_) = n.next;
  (n.next != nullptr ? n.next->previous : last_) = n.previous;
  n.queued = false;
}

// The next one to call; null: there is none. The one before has returned.
stop_node* full_stop_state::take_first() noexcept {
  stop_node* next = nullptr;
  bool awaited = false;
  {
    const locked guard(*this);
    next = first_;
    if (next != nullptr) remove_from_list(*next);
    // Release: who waits sees what the callback did. Partner: is_in().
    running_.store(next, std::memory_order_release);
    awaited = std::exchange(awaited_, false);
  }
  if (awaited) unpark(&running_, UINT32_MAX);
  return next;
}

bool full_stop_state::request_stop() noexcept {
  std::optional<std::stop_source> standard;
  {
    const locked guard(*this);
    if (requested_.load(std::memory_order_relaxed) && !is_only_announced()) return false;
    announced_.store(false, std::memory_order_relaxed);
    // Release: what we did before is seen by who finds it requested. Partner: requested().
    requested_.store(true, std::memory_order_release);
    requester_ = this_thread::get_id();
    standard = standard_;
  }
  if (standard) {
    // std::stop_callback remembers us by the OS thread, which no timer may take away.
    const uninterrupted guard;
    standard->request_stop();
  }
  while (stop_node* const n = take_first()) n->call(*n);
  return true;
}

void full_stop_state::announce_stop() noexcept {
  const locked guard(*this);
  if (requested_.load(std::memory_order_relaxed)) return;
  announced_.store(true, std::memory_order_relaxed);
  requested_.store(true, std::memory_order_release);  // as above
}

stop_state::outcome full_stop_state::add_node(stop_node& n) noexcept {
  const locked guard(*this);
  if (requested_.load(std::memory_order_relaxed)) return outcome::requested;
  if (!possible()) return outcome::never;
  n.previous = last_;
  (last_ != nullptr ? last_->next : first_) = &n;
  last_ = &n;
  n.queued = true;
  return outcome::queued;
}

bool full_stop_state::is_in(void* call) {
  const auto& c = *static_cast<other_call*>(call);
  return c.state->running_.load(std::memory_order_acquire) == c.node;
}

void full_stop_state::remove_node(stop_node& n) noexcept {
  {
    const locked guard(*this);
    if (n.queued) return remove_from_list(n);
    if (running_.load(std::memory_order_relaxed) != &n) return;  // it has been called
    if (requester_ == this_thread::get_id()) return;             // by itself
    awaited_ = true;
  }
  other_call call{this, &n};
  while (is_in(&call)) {
    // Who is in it wakes us, since we have said so with the lock held. Another one may be woken by
    // what is not meant for it.
    park({.what = "stop callback of another thread",
          .address = &running_,
          .still = &is_in,
          .argument = &call,
          .is_not_left = true});
  }
}

std::stop_token full_stop_state::standard_token() {
  {
    const locked guard(*this);
    if (standard_) return standard_->get_token();
    if (!possible()) return {};
  }
  std::stop_source made;  // no memory is asked for with the lock held
  {
    const locked guard(*this);
    if (standard_) return standard_->get_token();
    if (!possible()) return {};
    // Before anybody can have it: nothing hangs on it yet. A request that comes later finds it.
    if (requested_.load(std::memory_order_relaxed)) made.request_stop();
    standard_ = made;
  }
  return made.get_token();
}

void full_stop_state::forget_standard_source() noexcept {
  std::optional<std::stop_source> standard;
  const locked guard(*this);
  // Whoever has its token knows then that no stop is possible.
  standard.swap(standard_);
}

}  // namespace

stop_state* stop_state::make() { return new full_stop_state; }
void stop_state::free() noexcept { delete &all_of(*this); }

bool stop_state::request() noexcept {
  if (requested() && !all_of(*this).is_only_announced()) return false;
  retain();
  const stop_reference kept(this);
  return all_of(*this).request_stop();
}

void stop_state::announce() noexcept { all_of(*this).announce_stop(); }
stop_state::outcome stop_state::add(stop_node& n) noexcept { return all_of(*this).add_node(n); }
void stop_state::remove(stop_node& n) noexcept { all_of(*this).remove_node(n); }
std::stop_token stop_state::standard() { return all_of(*this).standard_token(); }
void stop_state::forget_standard() noexcept { all_of(*this).forget_standard_source(); }

}  // namespace strata::detail
