// SPDX-License-Identifier: Apache-2.0
// What a thread keeps for itself, by key, and what it has to do at its end. "Thread" is a
// strata::thread, any other task that owns a stack, or a thread from outside; a fiber has none of
// its own and gets misuse_error.
#pragma once

namespace strata::detail {

struct specific_value {
  void* value = nullptr;
  // At the thread's end, on its stack, unless `value` or `destroy` is null. May set values again:
  // they are destroyed too, for as many rounds as POSIX demands.
  void (*destroy)(void* value, void* argument) = nullptr;
  void* argument = nullptr;
  bool is_due = false;  // at the thread's end: was there when the round began
};

// The caller's value under `key`; null value when it has none.
specific_value get_specific(const void* key);
// Replaces it and returns the one before, which is not destroyed.
specific_value exchange_specific(const void* key, const specific_value& v);
// Removes and returns it.
specific_value take_specific(const void* key) noexcept;

// After all of the caller's values have been destroyed, in the order of these calls.
void at_thread_exit(void (*call)(void* argument) noexcept, void* argument);

}  // namespace strata::detail
