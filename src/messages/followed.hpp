// SPDX-License-Identifier: Apache-2.0
// What this node knows of objects of other nodes that tell it of their changes: stops
// (strata/shared_stop.hpp) and bests (strata/shared_best.hpp), by their numbers. A node makes an
// entry of its own first, and then asks the object's node to be told; so what that one tells finds
// the entry there, or has happened before the question and is in the answer.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "cluster/words/codec.hpp"
#include "messages/telling.hpp"
#include "net/wire.hpp"
#include "strata/detail/worker.hpp"
#include "strata/mutex.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

template <class Here>
struct followed {
  template <class... Arguments>
  explicit followed(net::node_id n, const Arguments&... arguments) : home(n), here(arguments...) {}
  const net::node_id home;  // the object's node
  Here here;
  home_answer answer;
  mutex asking;               // held while the other node is asked
  bool is_forgotten = false;  // with `asking`: it is not in the table any more, and tells nobody
  // That node tells this one. Release, after the answer; partner: acquire of who takes it without
  // asking.
  std::atomic<bool> is_told{false};
};

// Any thread of the runtime.
template <class Here>
class followed_objects {
 public:
  using entry = followed<Here>;

  // That of this number, of which the object's node tells this one; made of the arguments if there
  // is none. ask(entry) asks that node, and may suspend; what it throws this throws, and there is
  // no entry then.
  template <class Ask, class... Arguments>
  [[nodiscard]] std::shared_ptr<entry> follow(std::uint64_t number, net::node_id home, Ask ask,
                                              const Arguments&... arguments) {
    for (;;) {
      std::shared_ptr<entry> known = find(number);
      if (known == nullptr) known = make(number, home, arguments...);
      // Acquire: after what the other node answered. Partner: the store below.
      if (known->is_told.load(std::memory_order_acquire)) return known;
      const std::lock_guard lock(known->asking);
      if (known->is_told.load(std::memory_order_relaxed)) return known;
      if (known->is_forgotten) continue;  // who asked before us had no answer
      try {
        ask(*known);
      } catch (...) {
        known->is_forgotten = true;
        forget(number, known.get());
        throw;
      }
      known->is_told.store(true, std::memory_order_release);
      return known;
    }
  }
  // Null: this node does not follow it.
  [[nodiscard]] std::shared_ptr<entry> find(std::uint64_t number) noexcept {
    const strata::detail::uninterrupted guard;
    const std::lock_guard lock(lock_);
    const auto found = all_.find(number);
    return found == all_.end() ? nullptr : found->second;
  }
  // which: that one alone, and none that others have made since; null: whichever there is.
  void forget(std::uint64_t number, const entry* which = nullptr) noexcept {
    std::shared_ptr<entry> last;  // ends without the lock
    const strata::detail::uninterrupted guard;
    const std::lock_guard lock(lock_);
    const auto found = all_.find(number);
    if (found == all_.end() || (which != nullptr && found->second.get() != which)) return;
    last = std::move(found->second);
    all_.erase(found);
  }
  // What `from` says of an object of its own, which this node follows. go_on(entry) does what is
  // left: with what tells of a change, or answers what this node has told. Throws malformed.
  template <class GoOn>
  void hear(net::node_id from, const told_head& head, GoOn go_on) {
    const std::shared_ptr<entry> known = find(head.number);
    if (known == nullptr) return;  // it has ended meanwhile
    if (known->home != from) throw cluster::malformed("a word of another node's object");
    switch (head.word) {
      case told_word::answers:
        return known->answer.give(home_answer::there, head.value);
      case told_word::ended:
        return known->answer.give(home_answer::ended);
      case told_word::over:
        known->answer.give(home_answer::ended);
        return forget(head.number);
      default:
        return go_on(*known);
    }
  }
  // Who asks that node hears no more of it.
  void on_left(net::node_id home) noexcept {
    const strata::detail::uninterrupted guard;
    const std::lock_guard lock(lock_);
    for (const auto& [number, known] : all_) {
      if (known->home == home) known->answer.give(home_answer::left);
    }
  }
  // Whether it is so of an entry. is() is short.
  template <class Is>
  [[nodiscard]] bool any_of(Is is) noexcept {
    const strata::detail::uninterrupted guard;
    const std::lock_guard lock(lock_);
    return std::any_of(all_.begin(), all_.end(), [&](const auto& one) { return is(*one.second); });
  }
  // For tests.
  [[nodiscard]] std::size_t size() noexcept {
    const strata::detail::uninterrupted guard;
    const std::lock_guard lock(lock_);
    return all_.size();
  }

 private:
  template <class... Arguments>
  std::shared_ptr<entry> make(std::uint64_t number, net::node_id home,
                              const Arguments&... arguments) {
    auto made = std::make_shared<entry>(home, arguments...);
    const strata::detail::uninterrupted guard;
    const std::lock_guard lock(lock_);
    return all_.try_emplace(number, std::move(made)).first->second;
  }

  // Held briefly, by uninterrupted threads.
  strata::detail::spin_lock lock_;
  std::unordered_map<std::uint64_t, std::shared_ptr<entry>> all_;
};

}  // namespace strata::messages
