// SPDX-License-Identifier: Apache-2.0
#include "pthread/put_off.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "sched/outside_section.hpp"
#include "strata/semaphore.hpp"

namespace strata::detail::posix {
namespace {

struct call {
  const void* semaphore = nullptr;  // null: a signal is sent
  std::atomic<std::uint32_t> posts{0};
  pthread_t thread{};
  int number = 0;
  std::optional<sigval> value;
  // It is all there, and has not been done: others may join it. By handlers that interrupt each
  // other, whoever comes last ends first.
  std::atomic<bool> is_whole{false};
};

// Of one OS thread. Handlers add to it within sections of that, and outside of them it takes out:
// never both at once. Relaxed, all of it: nobody else looks.
struct call_list {
  std::array<call, put_off_max> calls;
  std::atomic<std::size_t> first{0};
  std::atomic<std::size_t> last{0};  // both only grow
  std::atomic<bool> has_to_note_mask{false};

  call& at(std::size_t i) noexcept { return calls[i % put_off_max]; }

  // Null: there is no room.
  call* add() noexcept {
    // At once, for another handler may come between.
    const std::size_t i = last.fetch_add(1, std::memory_order_relaxed);
    if (i - first.load(std::memory_order_relaxed) < put_off_max) return &at(i);
    last.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
};

thread_local constinit call_list here __attribute__((tls_model("initial-exec")));

void do_one(call& c) {
  const void* const semaphore = c.semaphore;
  const std::uint32_t posts = c.posts.load(std::memory_order_relaxed);
  const pthread_t thread = c.thread;
  const int number = c.number;
  const std::optional<sigval> value = c.value;
  c.is_whole.store(false, std::memory_order_relaxed);
  here.first.fetch_add(1, std::memory_order_relaxed);  // it can be used again
  if (semaphore != nullptr)
    semaphore_core::wake(semaphore, posts);
  else
    send_late(thread, number, value ? &*value : nullptr);
}

// What it does has sections of its own, at whose ends the rest may be done.
void do_all() {
  if (here.has_to_note_mask.exchange(false, std::memory_order_relaxed)) note_mask_of_os_thread();
  for (;;) {
    const std::size_t first = here.first.load(std::memory_order_relaxed);
    if (first == here.last.load(std::memory_order_relaxed)) return;
    do_one(here.at(first));
  }
}

void finish(call& c) noexcept {
  c.is_whole.store(true, std::memory_order_relaxed);
  outside_section::at_end(&do_all);
}

}  // namespace

bool put_off_waking(const void* semaphore) noexcept {
  for (std::size_t i = here.first.load(std::memory_order_relaxed);
       i != here.last.load(std::memory_order_relaxed); ++i) {
    call& c = here.at(i);
    if (!c.is_whole.load(std::memory_order_relaxed) || c.semaphore != semaphore) continue;
    c.posts.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  call* const c = here.add();
  if (c == nullptr) return false;
  c->semaphore = semaphore;
  c->posts.store(1, std::memory_order_relaxed);
  finish(*c);
  return true;
}

bool put_off_sending(pthread_t thread, int number, const sigval* value) noexcept {
  call* const c = here.add();
  if (c == nullptr) return false;
  c->semaphore = nullptr;
  c->thread = thread;
  c->number = number;
  c->value = value != nullptr ? std::optional<sigval>(*value) : std::nullopt;
  finish(*c);
  return true;
}

void put_off_noting_mask() noexcept {
  here.has_to_note_mask.store(true, std::memory_order_relaxed);
  outside_section::at_end(&do_all);
}

}  // namespace strata::detail::posix
