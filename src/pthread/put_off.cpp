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

// Of one OS thread. Handlers add to it within sections of that, and outside of them it takes out,
// where another handler's section may end, which takes out what is left. Relaxed, all of it: nobody
// else looks.
struct call_list {
  std::atomic<bool> is_taken{false};
  std::array<call, put_off_max> calls;
  std::atomic<std::size_t> first{0};
  std::atomic<std::size_t> last{0};  // both only grow

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

// Room for static thread-local variables is scarce where the library is loaded late.
struct state {
  std::atomic<call_list*> calls{nullptr};
  std::atomic<bool> has_to_note_mask{false};
};
thread_local constinit state here __attribute__((tls_model("initial-exec")));

// An OS thread keeps the one that it has taken.
constinit std::array<call_list, put_off_threads_max> lists;

// Null: there is none left.
call_list* list_here() noexcept {
  if (call_list* const mine = here.calls.load(std::memory_order_relaxed)) return mine;
  for (call_list& one : lists) {
    if (one.is_taken.exchange(true, std::memory_order_relaxed)) continue;
    call_list* before = nullptr;
    if (here.calls.compare_exchange_strong(before, &one, std::memory_order_relaxed)) return &one;
    one.is_taken.store(false, std::memory_order_relaxed);  // another handler has come between
    return before;
  }
  return nullptr;
}

// What it does has sections of its own, at whose ends the rest may be done.
void do_all() {
  if (here.has_to_note_mask.exchange(false, std::memory_order_relaxed)) note_mask_of_os_thread();
  call_list* const list = here.calls.load(std::memory_order_relaxed);
  if (list == nullptr) return;
  for (;;) {
    std::size_t first = list->first.load(std::memory_order_relaxed);
    if (first == list->last.load(std::memory_order_relaxed)) return;
    call& c = list->at(first);
    c.is_whole.store(false, std::memory_order_relaxed);  // nobody joins it any more
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const void* const semaphore = c.semaphore;
    const std::uint32_t posts = c.posts.load(std::memory_order_relaxed);
    const pthread_t thread = c.thread;
    const int number = c.number;
    const std::optional<sigval> value = c.value;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Another handler's section may have ended meanwhile, and then all has been done there.
    if (!list->first.compare_exchange_strong(first, first + 1, std::memory_order_relaxed)) continue;
    if (semaphore != nullptr)
      semaphore_core::wake(semaphore, posts);
    else
      send_late(thread, number, value ? &*value : nullptr);
  }
}

void finish(call& c) noexcept {
  c.is_whole.store(true, std::memory_order_relaxed);
  outside_section::at_end(&do_all);
}

}  // namespace

bool put_off_waking(const void* semaphore) noexcept {
  call_list* const list = list_here();
  if (list == nullptr) return false;
  for (std::size_t i = list->first.load(std::memory_order_relaxed);
       i != list->last.load(std::memory_order_relaxed); ++i) {
    call& c = list->at(i);
    if (!c.is_whole.load(std::memory_order_relaxed) || c.semaphore != semaphore) continue;
    c.posts.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  call* const c = list->add();
  if (c == nullptr) return false;
  c->semaphore = semaphore;
  c->posts.store(1, std::memory_order_relaxed);
  finish(*c);
  return true;
}

bool put_off_sending(pthread_t thread, int number, const sigval* value) noexcept {
  call_list* const list = list_here();
  call* const c = list != nullptr ? list->add() : nullptr;
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
