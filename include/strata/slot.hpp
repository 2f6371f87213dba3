// SPDX-License-Identifier: Apache-2.0
// Sync slots: the counters through which everything waits for everything else.
#pragma once
#include <atomic>
#include <cstdint>

#include "strata/detail/frame.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/slot_counter.hpp"
#include "strata/detail/worker.hpp"
#include "strata/global_ptr.hpp"

namespace strata {

namespace detail {
class slot_access;
}

/// A count of awaited signals and what happens when the last one arrives. Fires exactly at the
/// count-th signal; with a reset value it then counts again from there. Not used directly: a fiber
/// of a threaded function or a completion is a slot.
class slot : protected detail::task {
 public:
  slot(const slot&) = delete;
  slot& operator=(const slot&) = delete;

  /// Sets count and reset anew (EARTH's INIT_SYNC): it fires at the count-th signal from now on,
  /// and then at each reset-th; 0: never again. With a count of 0 it does not fire, and a signal is
  /// one too many: whoever awaits nothing goes on without it. Only before any signal of this round
  /// can arrive: whoever has got the slot's address afterwards, in a token or a message, finds it
  /// so. Never blocks; a call at another time is not noticed.
  void init(std::uint32_t count, std::uint32_t reset = 0) noexcept { counter_.init(count, reset); }

  /// Signals still awaited, for whom it does not matter that others may send some meanwhile: orders
  /// no memory. Any thread of its node; never blocks.
  [[nodiscard]] std::uint32_t count() const noexcept { return counter_.count(); }

 protected:
  slot(const detail::task_type& kind, std::uint32_t count, std::uint32_t reset) noexcept
      : detail::task{&kind}, counter_(count, reset) {}
  ~slot() = default;

  // One signal. Returns what it enables, or null. Throws misuse_error.
  detail::task* count_signal() {
    switch (counter_.signal()) {
      case detail::signal_outcome::pending:
        return nullptr;
      case detail::signal_outcome::fired:
        return this;
      case detail::signal_outcome::excess:
        refuse("a signal too many");
      case detail::signal_outcome::dead:
        refuse("a signal to a frame that has terminated");
    }
    return nullptr;
  }

  detail::slot_counter<> counter_;
  // Profiling: the longest chain of dependences that leads here, in ticks.
  std::atomic<std::uint64_t> path_{0};

 private:
  friend class threaded;
  friend class slot_ptr;
  friend class detail::slot_access;
  [[noreturn, gnu::cold]] void refuse(const char* what) const;
  slot* next_of_frame_ = nullptr;
};

/// The address of a slot on some node (EARTH's SPTR); 8 bytes, trivially copyable.
class slot_ptr {
 public:
  /// Names no slot: signalling it does nothing, so an optional signal needs no special case.
  constexpr slot_ptr() noexcept = default;
  /// `s` on `node`.
  slot_ptr(node_id_t node, slot* s) noexcept : where_(node, s) {}

  /// The slot that a global address of another part of the runtime stands for.
  explicit slot_ptr(detail::global_address where) noexcept : where_(where) {}
  [[nodiscard]] detail::global_address where() const noexcept { return where_; }

  /// The node that holds the slot.
  [[nodiscard]] node_id_t node() const noexcept { return where_.node(); }
  /// Whether it names a slot.
  explicit operator bool() const noexcept { return where_.address() != nullptr; }
  friend bool operator==(slot_ptr, slot_ptr) noexcept = default;

  /// See strata::sync().
  void signal() const {
    if (where_.address() == nullptr) return;
    detail::worker& w = detail::this_worker();
    if (where_.node() != w.node || w.owner == nullptr) [[unlikely]]
      return detail::remote_signal(w, where_);
    auto& s = *static_cast<slot*>(where_.address());
    if (w.profiling) [[unlikely]]
      detail::path_joins(s.path_, detail::path_here(w));
    if (detail::task* const enabled = s.count_signal()) {
      const detail::uninterrupted guard;  // others of this worker use its queues
      w.enable(enabled);
    }
  }

  /// See strata::incr_sync().
  void increment(std::uint32_t more) const;

 private:
  detail::global_address where_;
};

/// The global address of a slot of this node (EARTH's TO_SPTR). Throws misuse_error outside a
/// runtime.
inline slot_ptr to_sptr(slot& s) { return slot_ptr(node_id(), &s); }

/// Sends one signal (EARTH's SYNC, and RSYNC for a slot elsewhere). What the caller did before is
/// visible to what the slot enables. Within a node never blocks. To another one the calling worker
/// waits while too much is queued for it (1 MiB).
///
/// Throws misuse_error for a signal too many, to a slot of a terminated frame (detected for as long
/// as its memory is unused), for a node that does not exist, or outside a runtime; node_lost_error
/// once a node of the job is lost, node_left_error once the slot's has left. Of what is wrong with
/// a slot of another node the caller hears nothing: the computation fails there.
inline void sync(slot_ptr s) { s.signal(); }

/// Makes the slot await `more` additional signals (EARTH's INCR_SYNC). The caller must know that
/// the slot cannot fire meanwhile: one of the signals is still its own to send. Blocks as sync().
/// Throws misuse_error when the slot has fired for the last time already, or would await more than
/// 2^32 - 1 signals, and awaits then what it did; otherwise as sync().
inline void incr_sync(slot_ptr s, std::uint32_t more = 1) { s.increment(more); }

/// A slot that a task with a stack can wait for: the bridge from fibers to fork-join code. Unlike
/// other slots it may also be signalled by tasks of another runtime of this process (with the same
/// node number).
///
///   long value;
///   strata::completion done;
///   strata::token<fib>(32, strata::to_global(&value), done.sptr());
///   done.wait();
///
/// It stays until wait() has returned, once others have its address: who signals it later writes
/// into whatever is there then.
class completion final : public slot {
 public:
  /// Completed by the count-th signal. One of no signals is complete, as a latch of 0 is.
  explicit completion(std::uint32_t count = 1) noexcept : slot(type_of, count, 0) {
    if (count == 0) [[unlikely]]
      complete_at_once();
  }

  completion(const completion&) = delete;
  completion& operator=(const completion&) = delete;
  /// Where all signals have come and nobody has waited for them, a worker is still to hear of it:
  /// suspends until then. Whoever cannot wait (in a fiber, outside a runtime) ends the program
  /// there, by std::terminate().
  ~completion() {
    if (counter_.queued() && !join_.done()) [[unlikely]]
      end_unawaited();
  }

  /// Awaits `count` signals from now on, for another wait(). Only while no signal can arrive:
  /// before its address is known to others, or when wait() has returned. Never blocks; a call at
  /// another time is not noticed.
  void init(std::uint32_t count) noexcept;

  /// The address to signal.
  [[nodiscard]] slot_ptr sptr() { return to_sptr(*this); }

  /// Suspends the calling task until completed; its worker does other work meanwhile. What was done
  /// before the signals is visible afterwards. Once it has returned it does so at once, until
  /// init(). Throws misuse_error in a fiber (which must not block) and outside a runtime; rethrows
  /// the exception that left a fiber of this runtime meanwhile, because the signals may then never
  /// come. No fiber runs any more then, and signals that come all the same, while the completion is
  /// there, complete nothing.
  void wait();

 private:
  struct waiter;
  void complete_at_once() noexcept;
  [[gnu::cold]] void end_unawaited() noexcept;
  static void run(detail::task& t, detail::worker& w);
  static const char* name() { return "completion"; }
  static constexpr detail::task_type type_of{&run, nullptr, &run, &name};

  detail::join_point join_;  // completed by the last signal, or by a failure that comes before it
};

}  // namespace strata
