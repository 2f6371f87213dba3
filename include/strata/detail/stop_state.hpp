// SPDX-License-Identifier: Apache-2.0
// What the stop sources, tokens and callbacks of one request share.
#pragma once
#include <atomic>
#include <cstdint>
#include <stop_token>
#include <utility>

namespace strata::detail {

// A callback, in the list of those that a request calls.
struct stop_node {
  explicit stop_node(void (*f)(stop_node&) noexcept) noexcept : call(f) {}
  void (*call)(stop_node&) noexcept;  // it may be gone afterwards
  stop_node* next = nullptr;
  stop_node* previous = nullptr;
  bool queued = false;
};

class stop_state {
 public:
  // With one source and one reference. Throws std::bad_alloc.
  static stop_state* make();

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    // Acquire-release: whoever frees it comes after all who used it.
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) free();
  }
  void add_source() noexcept { sources_.fetch_add(1, std::memory_order_relaxed); }
  void drop_source() noexcept {
    // Release: a request of this source is seen by who finds that there is none. Partner:
    // possible().
    if (sources_.fetch_sub(1, std::memory_order_acq_rel) == 1) forget_standard();
  }

  // Acquire: what the one who requested did before. Partner: request().
  [[nodiscard]] bool requested() const noexcept {
    return requested_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool possible() const noexcept {
    return sources_.load(std::memory_order_acquire) != 0 || requested();
  }

  // Calls all callbacks, one after the other; true for the first request. A reference is held
  // meanwhile: a callback may end the last source.
  bool request() noexcept;
  // requested() is true from now on, and callbacks are called by request() alone, which is the
  // first still. Waits for nothing.
  void announce() noexcept;

  enum class outcome { queued, requested, never };
  outcome add(stop_node& n) noexcept;
  // Afterwards n is not called, nor is anybody in it but the caller. Suspends the caller while
  // another thread is.
  void remove(stop_node& n) noexcept;

  // A token that is requested with us. Throws std::bad_alloc.
  [[nodiscard]] std::stop_token standard();

 protected:
  stop_state() noexcept = default;
  ~stop_state() = default;
  std::atomic<bool> requested_{false};

 private:
  void free() noexcept;
  void forget_standard() noexcept;

  std::atomic<std::uint32_t> references_{1};
  std::atomic<std::uint32_t> sources_{1};
};

// A reference; null where no stop can be asked for.
class stop_reference {
 public:
  stop_reference() noexcept = default;
  explicit stop_reference(stop_state* retained) noexcept : state_(retained) {}
  stop_reference(const stop_reference& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) state_->retain();
  }
  stop_reference(stop_reference&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  stop_reference& operator=(stop_reference other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~stop_reference() {
    if (state_ != nullptr) state_->release();
  }
  [[nodiscard]] stop_state* get() const noexcept { return state_; }
  friend bool operator==(const stop_reference&, const stop_reference&) noexcept = default;

 private:
  stop_state* state_ = nullptr;
};

}  // namespace strata::detail
