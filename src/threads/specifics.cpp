// SPDX-License-Identifier: Apache-2.0
#include "threads/specifics.hpp"

#include <limits.h>

#include <utility>

#include "strata/detail/join.hpp"
#include "strata/thread_specific.hpp"
#include "threads/thread_block.hpp"

namespace strata::detail {
namespace {

struct specifics {
  std::map<const void*, specific_value>& values;
  std::vector<exit_call>& calls;
};

// Of a thread from outside. By pointer, because objects with static storage can ask after the
// thread's own have been destroyed; what they set then is never destroyed.
struct own_specifics {
  std::map<const void*, specific_value> values;
  std::vector<exit_call> calls;
};
thread_local own_specifics* own_here = nullptr;
struct at_end_of_outside_thread {
  ~at_end_of_outside_thread() { end_own_specifics(); }
};

specifics of_outside_thread() {
  if (own_here == nullptr) {
    static thread_local const at_end_of_outside_thread reaper;
    (void)&reaper;
    own_here = new own_specifics;
  }
  return {own_here->values, own_here->calls};
}

specifics of_caller() {
  if (this_worker().owner == nullptr) return of_outside_thread();
  thread_extras& e = extras_of(*current_block());
  return {e.specifics, e.at_exit};
}

// Null when the caller has no values; makes nothing.
std::map<const void*, specific_value>* values_of_caller() noexcept {
  if (this_worker().owner == nullptr) return own_here != nullptr ? &own_here->values : nullptr;
  const thread_block* const b = current_block_if_any();
  return b != nullptr && b->extras != nullptr ? &b->extras->specifics : nullptr;
}

void end_values(std::map<const void*, specific_value>& values) {
  for (int round = 0; round < _POSIX_THREAD_DESTRUCTOR_ITERATIONS && !values.empty(); ++round) {
    // Those that are there now, each once. One that is being destroyed is no longer there; those
    // that come after it are. They are marked, and not listed: there may be no memory.
    for (auto& [key, v] : values) v.is_due = true;
    const void* last = nullptr;
    for (auto at = values.begin(); at != values.end(); at = values.upper_bound(last)) {
      last = at->first;
      if (!at->second.is_due) continue;
      const auto taken = values.extract(at);
      const specific_value& v = taken.mapped();
      if (v.value != nullptr && v.destroy != nullptr) v.destroy(v.value, v.argument);
    }
  }
  values.clear();
}

}  // namespace

void end_specifics(std::map<const void*, specific_value>& values, std::vector<exit_call>& calls) {
  // A call may end an object, a result that nobody has fetched, whose end asks for another one, or
  // sets a value. Until there are none: somebody waits for what each makes ready.
  for (;;) {
    end_values(values);
    if (calls.empty()) return;
    for (const exit_call& c : std::exchange(calls, {})) c.call(c.argument);
  }
}

void end_own_specifics() {
  if (own_here == nullptr) return;
  end_specifics(own_here->values, own_here->calls);
  delete std::exchange(own_here, nullptr);
}

specific_value get_specific(const void* key) {
  auto* const values = values_of_caller();
  if (values == nullptr) {
    if (this_worker().owner != nullptr) require_stack();  // a fiber
    return {};
  }
  const auto found = values->find(key);
  return found != values->end() ? found->second : specific_value{};
}

specific_value exchange_specific(const void* key, const specific_value& v) {
  specific_value& here = of_caller().values[key];
  const bool is_due = here.is_due;
  const specific_value before = std::exchange(here, v);
  here.is_due = is_due;  // as the one before, at the thread's end
  return before;
}

specific_value take_specific(const void* key) noexcept {
  auto* const values = values_of_caller();
  if (values == nullptr) return {};
  const auto found = values->extract(key);
  return found.empty() ? specific_value{} : found.mapped();
}

void at_thread_exit(void (*call)(void*) noexcept, void* argument) {
  of_caller().calls.push_back({call, argument});
}

specific_key::specific_key(void (*destroy_)(specific_key&, void*)) noexcept : destroy(destroy_) {}

void specific_key::drop() noexcept {
  // Acquire-release: everybody else is done with it.
  if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void specific_key::end_value(void* value, void* argument) {
  auto& key = *static_cast<specific_key*>(argument);
  key.destroy(key, value);
  key.drop();
}

void* specific_key::get() const { return get_specific(this).value; }

void specific_key::set(void* value) {
  if (value != nullptr) {
    const specific_value before = exchange_specific(this, {value, &end_value, this});
    if (before.value == nullptr) {
      users.fetch_add(1, std::memory_order_relaxed);
    } else if (before.value != value) {
      // The new value counts in place of the old one.
      destroy(*this, before.value);
    }
  } else if (const specific_value before = take_specific(this); before.value != nullptr) {
    end_value(before.value, this);
  }
}

void* specific_key::release() {
  const specific_value before = take_specific(this);
  if (before.value != nullptr) drop();
  return before.value;
}

}  // namespace strata::detail
