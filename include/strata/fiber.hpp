// SPDX-License-Identifier: Apache-2.0
// EARTH's programming model: threaded functions whose fibers share a frame and run when their data
// has arrived. Source: C. Morrone, J. Amaral, G. Tremblay, G. Gao, "A multi-threaded runtime system
// for a multi-processor/multi-node cluster", 2001 (Threaded-C release 2.0; in full:
// docs/architecture.md#sources). Its Figure 1, line for line:
//
// clang-format off
//   struct fib : strata::threaded {                           // THREADED fib(int n, int *GLOBAL result, SPTR done)
//     int n;
//     strata::global_ptr<int> result;
//     strata::slot_ptr done;
//     int r1, r2;
//     void start() {                                          //   (the initialization fiber)
//       if (n <= 1) {
//         put_sync(1, result, done);                          //   PUT_SYNC(1, result, done);
//         terminate();                                        //   TERMINATE;
//       } else {
//         token<fib>(n - 1, to_global(&r1), to_sptr(READY));  //   TOKEN(fib, n-1, TO_GLOBAL(&r1), TO_SPTR(READY));
//         token<fib>(n - 2, to_global(&r2), to_sptr(READY));
//       }
//     }
//     void ready() {                                          //   FIBER READY <* 2 *> {
//       put_sync(r1 + r2, result, done);
//       terminate();
//     }
//     strata::fiber<&fib::ready> READY{this, 2};
//   };
//
// clang-format on
// A fiber runs to its end, is never interrupted and never waits for others: forking or waiting in
// one throws misuse_error. Fibers of one frame may run at the same time on different workers,
// unless they are exclusive.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

#include "strata/detail/address.hpp"
#include "strata/detail/frame.hpp"
#include "strata/global_ptr.hpp"
#include "strata/slot.hpp"

namespace strata {

/// What a threaded function derives from. Its first members are its parameters, in the order in
/// which token() and invoke() pass them; then follow frame variables and fibers; `void start()` is
/// the initialization fiber. (A constructor that takes the parameters works as well; without one,
/// frame variables begin as zero, as an aggregate's do.) The frame lives from its start until
/// terminate(). A computation that fails, because an exception left a fiber, leaves the frames that
/// lived: others may know their slots. They stay until the runtime ends, and are not destroyed: let
/// no exception leave a fiber where that is more than an end.
class threaded {
 public:
  threaded() noexcept = default;
  threaded(const threaded&) = delete;
  threaded& operator=(const threaded&) = delete;

  /// Ends the activation (EARTH's TERMINATE): the frame is destroyed when the calling fiber
  /// returns. Only in a fiber of this frame. Throws misuse_error when it was called before, or
  /// while a fiber of this frame is enabled but has not begun.
  void terminate() {
    detail::worker& w = detail::this_worker();
    bool pending = false;
    for (const slot* s = slots_; s != nullptr; s = s->next_of_frame_)
      pending |= s->counter_.queued();
    if (pending || w.ended != nullptr) [[unlikely]]
      refuse_to_terminate(pending);
    w.ended = this;
  }

 private:
  template <auto Body>
  friend class fiber;
  template <auto Body>
  friend class exclusive_fiber;
  template <class F, class... Arguments>
  friend struct detail::token_of;
  friend void detail::end_frame(detail::worker& w, bool inside_gate) noexcept;

  void add(slot& s) noexcept {
    s.next_of_frame_ = slots_;
    slots_ = &s;
  }
  [[noreturn, gnu::cold]] static void refuse_to_terminate(bool pending);

  slot* slots_ = nullptr;
  detail::exclusive_gate* gate_ = nullptr;
  const detail::frame_type* type_ = nullptr;
};

/// A fiber of the threaded function that contains it: runs `(frame->*Body)()` at the count-th
/// signal, then, if reset is not 0, at every reset-th further one. Signals may come faster than the
/// fiber runs: it then runs once for each time it was enabled.
template <auto Body>
class fiber final : public slot {
 public:
  using frame = typename detail::member_of<decltype(Body)>::type;

  /// To be written as `fiber<&f::body> NAME{this, count};` in the threaded function f.
  fiber(frame* f, std::uint32_t count, std::uint32_t reset = 0) noexcept
      : slot(type_of, count, reset), frame_(f) {
    static_cast<threaded*>(f)->add(*this);
  }

 private:
  static void run(detail::task& t, detail::worker& w) {
    auto& self = static_cast<fiber&>(static_cast<slot&>(t));
    if (w.failed->load(std::memory_order_relaxed)) [[unlikely]]
      return;
    frame* const f = self.frame_;
    if (w.profiling) [[unlikely]]
      detail::path_begin(w, self.path_.load(std::memory_order_relaxed));
    self.counter_.begin();
    w.events.fibers.add();
    detail::run_fiber(w, &name, [f] { (f->*Body)(); });
    if (w.profiling) [[unlikely]]
      detail::path_end(w);
  }
  static void abandon(detail::task&, detail::worker&) {}
  static const char* name() { return __PRETTY_FUNCTION__; }
  static constexpr detail::task_type type_of{&run, nullptr, &abandon, &name};

  frame* frame_;
};

/// A fiber of which at most one runs at a time in each activation (EARTH's EXCLUSIVE): the
/// exclusive fibers of one frame are serialized, those of different frames are not. Waiting for its
/// turn occupies no worker.
template <auto Body>
class exclusive_fiber final : public slot {
 public:
  using frame = typename detail::member_of<decltype(Body)>::type;

  /// As for fiber.
  exclusive_fiber(frame* f, std::uint32_t count, std::uint32_t reset = 0) noexcept
      : slot(type_of, count, reset), frame_(f) {
    auto* const base = static_cast<threaded*>(f);
    base->add(*this);
    // The first exclusive fiber of a frame holds the gate of all.
    if (base->gate_ == nullptr) base->gate_ = &own_gate_;
  }

 private:
  static void run(detail::task& t, detail::worker& w) {
    auto& self = static_cast<exclusive_fiber&>(static_cast<slot&>(t));
    if (w.failed->load(std::memory_order_relaxed)) [[unlikely]]
      return;
    frame* const f = self.frame_;
    detail::exclusive_gate& gate = *static_cast<threaded*>(f)->gate_;
    if (!gate.enter(t)) return;  // who leaves enables us again
    if (w.profiling) [[unlikely]]
      detail::path_begin(w, self.path_.load(std::memory_order_relaxed));
    self.counter_.begin();
    w.events.fibers.add();
    const bool ended = detail::run_fiber(
        w, &name, [f] { (f->*Body)(); }, true);
    if (w.profiling) [[unlikely]]
      detail::path_end(w);
    // A fiber that we enabled may have ended the frame by now; it exists until we leave.
    if (!ended && gate.leave(w)) {
      w.ended = f;
      detail::end_frame(w, true);
    }
  }
  static void abandon(detail::task&, detail::worker&) {}
  static const char* name() { return __PRETTY_FUNCTION__; }
  static constexpr detail::task_type type_of{&run, nullptr, &abandon, &name};

  frame* frame_;
  detail::exclusive_gate own_gate_;
};

/// Activates F(arguments...) asynchronously on a worker, and later on a node, of the runtime's
/// choice (EARTH's TOKEN): idle ones take tokens from busy ones. The arguments are copied; they
/// must be trivially copyable, because a token may travel, or, with strata/serialize.hpp, what
/// cereal serialises and can be made by default. They become bytes when another node takes the
/// token: functions serialize() are called by any thread of this node then, and must not wait for
/// others, call Strata, or go deep (see travelling_call); if they throw, the computation fails, as
/// it does if F's constructor throws. An address among them compiles, because a token
/// may stay: it means nothing where the token runs on another node. Never blocks. 3 to 5 ns.
/// Throws misuse_error outside a runtime.
template <class F, class... Arguments>
void token(const Arguments&... arguments) {
  detail::worker& w = detail::this_worker();
  detail::check_inside(w);
  detail::unless_refused(w, detail::make_token<F>(w, arguments...), [&w](detail::task* t) {
    w.push(detail::marked_as_travelling(t, detail::token_mark<Arguments...>));
  });
}

/// Activates F(arguments...) on node `where` (EARTH's INVOKE), as soon as possible, ahead of
/// tokens. Arguments as for token(), but addresses, which may stay with a token and mean nothing on
/// the node that is named here, do not compile: pass a global_ptr, or a local_address where `where`
/// is known to be the calling node. Within a node never blocks; to another one it blocks, and
/// throws, as put_sync(). Throws misuse_error when there is no such node, and outside a runtime;
/// and what serialises the arguments throws.
template <class F, class... Arguments>
void invoke(on_node where, const Arguments&... arguments) {
  static_assert(detail::refuse_addresses<Arguments...>());
  detail::worker& w = detail::this_worker();
  detail::check_inside(w);
  detail::task* const t = detail::make_token<F>(w, arguments...);
  if (where.number != w.node) [[unlikely]]
    return detail::remote_invoke(w, where.number, t);
  detail::unless_refused(w, t, [&w](detail::task* one) { w.enable(one); });
}

/// Stores value at `to`, then signals `done` (EARTH's PUT_SYNC, DATA_SYNC): who is enabled by the
/// signal sees the value. Here and below an address as T does not compile (local_address).
///
/// Within a node never blocks. To another one the calling worker waits while too much is queued for
/// it (1 MiB). Throws misuse_error for a null address, for a node that does not exist, outside a
/// runtime, and as sync(); node_lost_error once a node of the job is lost, node_left_error once
/// the other one has left.
template <class T>
void put_sync(const std::type_identity_t<T>& value, global_ptr<T> to, slot_ptr done) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can travel");
  static_assert(detail::refuse_addresses<T>());
  detail::worker& w = detail::this_worker();
  if (to.node() != w.node || w.owner == nullptr) [[unlikely]]
    return detail::remote_put(w, to.where(), std::addressof(value), sizeof(T), done.where());
  detail::check_somewhere("the global_ptr to put to", to.where().address());
  std::memcpy(to.where().address(), std::addressof(value), sizeof(T));
  sync(done);
}

/// Fetches the T at `from` into *into, which must stay valid, then signals `done` (EARTH's
/// GET_SYNC). Blocks and throws as put_sync().
template <class T>
void get_sync(global_ptr<const std::type_identity_t<T>> from, T* into, slot_ptr done) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can travel");
  static_assert(detail::refuse_addresses<T>());
  detail::worker& w = detail::this_worker();
  if (from.node() != w.node || w.owner == nullptr) [[unlikely]]
    return detail::remote_get(w, from.where(), into, sizeof(T), done.where());
  detail::check_somewhere("the global_ptr to get from", from.where().address());
  detail::check_somewhere("the pointer to get into", into);
  std::memcpy(static_cast<void*>(into), from.where().address(), sizeof(T));
  sync(done);
}

/// Copies `count` elements, then signals `done` (EARTH's BLKMOV_SYNC). At least one end must be on
/// the calling node. The ranges must not overlap. Within a node it takes as long as memcpy.
/// Otherwise blocks and throws as put_sync(); misuse_error, too, when neither end is here, and for
/// more than fits into any memory.
template <class T>
void block_move_sync(global_ptr<const std::type_identity_t<T>> from, global_ptr<T> to,
                     std::size_t count, slot_ptr done) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can travel");
  static_assert(detail::refuse_addresses<T>());
  const std::size_t bytes = detail::bytes_of_elements<T>(count);
  detail::worker& w = detail::this_worker();
  if (from.node() == w.node && to.node() == w.node && w.owner != nullptr) [[likely]] {
    if (count != 0) {
      detail::check_somewhere("the global_ptr to get from", from.where().address());
      detail::check_somewhere("the global_ptr to put to", to.where().address());
      std::memcpy(to.where().address(), from.where().address(), bytes);
    }
    sync(done);
  } else if (from.node() == w.node) {
    detail::remote_put(w, to.where(), from.where().address(), bytes, done.where());
  } else {
    void* const here = detail::local_address(
        to.where(), w, "one end of a block_move_sync lies on the calling node");
    detail::remote_get(w, from.where(), here, bytes, done.where());
  }
}

}  // namespace strata
