// SPDX-License-Identifier: Apache-2.0
// What nodes tell each other of a stop (strata/shared_stop.hpp) or a best (strata/shared_best.hpp),
// by kind::told. Whoever handles messages hears it, so it is heard where every worker is deep in a
// computation that asks what it knows again and again, and would not come to a call before it ends.
#pragma once
#include <atomic>
#include <cstdint>

#include "messages/named_objects.hpp"
#include "messages/wire.hpp"
#include "net/wire.hpp"
#include "strata/detail/parking.hpp"

namespace strata::messages {

class messenger;

// What a node has said that was asked by told_word::asks. One asks, once.
class home_answer {
 public:
  enum kind_of : std::uint32_t { none, there, ended, left };

  // Acquire: value(). Partner: give().
  [[nodiscard]] kind_of kind() const noexcept { return kind_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  // By who handles messages; the first counts. value: that of `there`.
  void give(kind_of k, std::uint64_t value = 0) noexcept {
    // Who asks may be reading it. A home may say so twice: to one who gave up, too.
    if (kind_.load(std::memory_order_relaxed) != none) return;
    if (k == there) value_ = value;
    kind_.store(k, std::memory_order_release);
    strata::detail::unpark(this, UINT32_MAX);
  }

 private:
  std::uint64_t value_ = 0;  // written before kind_ says that it is `there`
  std::atomic<kind_of> kind_{none};
};

// An object of this node while a message about it is handled. Null: it has ended, or is not of that
// kind.
template <class T>
class object_at_home {
 public:
  object_at_home(named_objects& all, std::uint64_t number) noexcept
      : all_(all), number_(number), object_(all.hold(number, T::mark())) {}
  ~object_at_home() {
    if (object_ != nullptr) all_.let_go(number_);
  }
  object_at_home(const object_at_home&) = delete;
  object_at_home& operator=(const object_at_home&) = delete;
  [[nodiscard]] T* operator->() const noexcept { return static_cast<T*>(object_); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  named_objects& all_;
  std::uint64_t number_;
  void* object_;
};

// With kind::told. They wait for nothing.
void hear_of_best(messenger& here, net::node_id from, const told_head& head);
void hear_of_stop(messenger& here, net::node_id from, const told_head& head);

}  // namespace strata::messages
