// SPDX-License-Identifier: Apache-2.0
// For tests that stand in front of a function of the C library, and count its calls.
#pragma once
#include <dlfcn.h>

#include <atomic>

namespace strata::test {

// The function that the program would have called. Looked up again by threads that come at once.
template <class F>
class hidden_call {
 public:
  constexpr explicit hidden_call(const char* name) : name_(name) {}
  F* get() noexcept {
    F* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name_));
      found_.store(found, std::memory_order_relaxed);
    }
    return found;
  }

 private:
  const char* const name_;
  std::atomic<F*> found_{nullptr};
};

}  // namespace strata::test
