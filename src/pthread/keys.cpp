// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <pthread.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <new>
#include <utility>

#include "pthread/holding.hpp"
#include "pthread/record.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail::posix {
namespace {

// A key's number is used again when it was deleted; values carry the use they belong to. Odd: in
// use.
struct key {
  std::atomic<std::uint32_t> use{0};
  std::atomic<void (*)(void*)> destroy{nullptr};
};
constinit std::array<key, PTHREAD_KEYS_MAX> process_keys{};
constinit spin_lock making;

// Where the first records keep their first values, which ask nobody for memory: an allocator that
// begins sets one. The first part of a record is never freed.
constinit std::array<key_part, records_at_once> first_parts{};

key_part* make_part(const record& r, std::size_t part) {
  return part == 0 && r.index < first_parts.size() ? &first_parts[r.index] : new key_part{};
}

bool is_used(std::uint32_t use) noexcept { return (use & 1) != 0; }

}  // namespace

void hold_keys() noexcept { making.lock(); }
void release_keys() noexcept { making.unlock(); }

void end_keys(record& r) {
  if (!r.has_values) return;
  for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS && r.has_values; ++round) {
    r.has_values = false;
    for (std::size_t part = 0; part < r.keys.size(); ++part) {
      if (r.keys[part] == nullptr) continue;
      for (std::size_t i = 0; i < keys_per_part; ++i) {
        key_value& v = (*r.keys[part])[i];
        void* const value = std::exchange(v.value, nullptr);
        const key& k = process_keys[part * keys_per_part + i];
        if (value == nullptr || k.use.load(std::memory_order_acquire) != v.use) continue;
        if (auto* const destroy = k.destroy.load(std::memory_order_relaxed)) destroy(value);
      }
    }
  }
  r.has_values = false;
  // The first part stays: whoever gets this record is likely to want it.
  for (std::size_t part = 1; part < r.keys.size(); ++part) r.keys[part].reset();
  if (r.keys[0] != nullptr) r.keys[0]->fill({});
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
  const holding lock(making);
  for (std::size_t i = 0; i < process_keys.size(); ++i) {
    const std::uint32_t use = process_keys[i].use.load(std::memory_order_relaxed);
    if (is_used(use)) continue;
    process_keys[i].destroy.store(destroy, std::memory_order_relaxed);
    process_keys[i].use.store(use + 1, std::memory_order_release);
    *key = static_cast<pthread_key_t>(i);
    return 0;
  }
  return EAGAIN;
}

int strata_pthread_key_delete(pthread_key_t key) {
  if (key >= process_keys.size()) return EINVAL;
  const holding lock(making);
  const std::uint32_t use = process_keys[key].use.load(std::memory_order_relaxed);
  if (!is_used(use)) return EINVAL;
  process_keys[key].use.store(use + 1, std::memory_order_release);
  return 0;
}

void* strata_pthread_getspecific(pthread_key_t key) {
  if (key >= process_keys.size()) return nullptr;
  const record* const r = self_if_any();
  if (r == nullptr || r->keys[key / keys_per_part] == nullptr) return nullptr;
  const key_value& v = (*r->keys[key / keys_per_part])[key % keys_per_part];
  return v.use == process_keys[key].use.load(std::memory_order_acquire) ? v.value : nullptr;
}

int strata_pthread_setspecific(pthread_key_t key, const void* value) {
  if (key >= process_keys.size()) return EINVAL;
  const std::uint32_t use = process_keys[key].use.load(std::memory_order_acquire);
  if (!is_used(use)) return EINVAL;
  try {
    record& r = self();
    auto& part = r.keys[key / keys_per_part];
    if (part == nullptr) part.reset(make_part(r, key / keys_per_part));
    (*part)[key % keys_per_part] = {const_cast<void*>(value), use};
    r.has_values = true;
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}
}
