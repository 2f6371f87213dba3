// SPDX-License-Identifier: Apache-2.0
// Tokens, the frames they become, and what surrounds every fiber.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/detail/remote.hpp"
#include "strata/detail/worker.hpp"

namespace strata {
class threaded;
}

namespace strata::detail {

// The class of a member function that takes nothing.
template <class M>
struct member_of;
template <class C, class R>
struct member_of<R (C::*)()> {
  using type = C;
};
template <class C, class R>
struct member_of<R (C::*)() noexcept> {
  using type = C;
};

// What the end of a frame needs to know of its threaded function.
struct frame_type {
  std::uint32_t block_bytes;
  void (*destroy)(threaded&) noexcept;
};

// Profiling of fibers: the length of the chain of dependences that leads to a moment, in ticks.
std::uint64_t path_here(const worker& w) noexcept;
void path_begin(worker& w, std::uint64_t length) noexcept;
void path_end(worker& w) noexcept;
inline void path_joins(std::atomic<std::uint64_t>& longest, std::uint64_t length) noexcept {
  std::uint64_t seen = longest.load(std::memory_order_relaxed);
  while (seen < length && !longest.compare_exchange_weak(seen, length, std::memory_order_relaxed)) {
  }
}

// The running fiber has thrown: the computation fails.
void fiber_threw(worker& w) noexcept;
// The frame that the fiber just run has terminated goes back to the pool: at once, or, if another
// fiber is still inside the frame's gate, when that one leaves.
void end_frame(worker& w, bool inside_gate) noexcept;

// Runs a fiber; an exclusive one with inside_gate. Returns whether it terminated its frame, which
// is gone then. Nothing of the frame may be touched after the call even if it did not, except by a
// fiber inside the gate: another fiber may have ended it.
template <class Call>
[[gnu::always_inline]] inline bool run_fiber(worker& w, const char* (*name)(), const Call& call,
                                             bool inside_gate = false) noexcept {
  w.running = name;
  try {
    call();
  } catch (...) {
    fiber_threw(w);
  }
  if (w.ended == nullptr) return false;
  end_frame(w, inside_gate);
  return true;
}

// Serializes the exclusive fibers of one frame.
class exclusive_gate {
 public:
  // True: the caller is inside. False: t waits; leave() enables it again.
  bool enter(task& t);
  // True: another fiber has ended the frame meanwhile, and left it to the caller.
  [[nodiscard]] bool leave(worker& w);
  // A fiber that is not inside ends the frame. False: somebody is inside, and will see to it.
  [[nodiscard]] bool close();

 private:
  // Held for a few instructions; a fiber that waits for its turn does so in waiting_, not here.
  std::mutex mutex_;
  bool busy_ = false;
  bool closed_ = false;
  // In order of arrival, from next_ on. A vector, because most gates never need one and a frame
  // should not cost an allocation for each exclusive fiber.
  std::vector<task*> waiting_;
  std::size_t next_ = 0;
};

// A function's identity and its arguments by value. Its block is large enough for the frame that
// takes its place.
template <class F, class... Arguments>
struct token_of : task {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...),
                "a token may travel to another node, so its arguments must be trivially copyable; "
                "pass data by global_ptr");
  static_assert((std::size_t{0} + ... + sizeof(Arguments)) <= travelling_bytes_max,
                "a token carries at most 16 KiB of arguments; pass data by global_ptr");
  static_assert(std::is_base_of_v<threaded, F>, "token<F>: F must derive from strata::threaded");
  static_assert(alignof(F) <= 16, "frames are aligned to 16 bytes");

  static constexpr std::uint32_t block_bytes() {
    return static_cast<std::uint32_t>(std::max(sizeof(token_of), sizeof(F)));
  }

  std::tuple<Arguments...> arguments;
  std::uint64_t path;  // set when profiling

  static void run(task& t, worker& w) {
    auto* const token = static_cast<token_of*>(&t);
    if (w.failed->load(std::memory_order_relaxed)) [[unlikely]]
      return abandon(t, w);
    const std::tuple<Arguments...> values = token->arguments;
    if (w.profiling) [[unlikely]]
      path_begin(w, token->path);
    std::destroy_at(token);
    F* const f = std::apply([&](const Arguments&... a) { return make_frame(token, a...); }, values);
    set_type(*f);
    w.events.activations.add();
    run_fiber(w, &type_name<F>, [f] { f->start(); });
    if (w.profiling) [[unlikely]]
      path_end(w);
  }

  static void abandon(task& t, worker& w) {
    std::destroy_at(static_cast<token_of*>(&t));
    w.frames.deallocate(&t, block_bytes());
  }

  static void destroy(threaded& f) noexcept { std::destroy_at(static_cast<F*>(&f)); }

  // A template, so that it is looked at when `threaded` is complete.
  template <class Base = threaded>
  static void set_type(F& f) noexcept {
    static_cast<Base&>(f).type_ = &frame_type_of;
  }

  static constexpr frame_type frame_type_of{block_bytes(), &destroy};

  // ---- on the wire ----
  using packed = packed_arguments<Arguments...>;
  static void pack(const task& t, std::uint16_t, std::byte* out) {
    packed::pack(static_cast<const token_of&>(t).arguments, out);
  }
  static task* unpack(worker& w, const std::byte* in) {
    auto* const t = ::new (w.frames.allocate(block_bytes())) token_of{{&type_of}, {}, 0};
    packed::unpack(t->arguments, in);
    return t;
  }
  static const travelling_code code;
  static constexpr wire_type wire_type_of{packed::bytes, &pack, &unpack, &type_name<F>, &code};

  static constexpr task_type type_of{&run, nullptr, &abandon, &type_name<F>, &wire_type_of};

 private:
// Frame variables after the parameters have no initializer, as in a function.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
  static F* make_frame(void* block, const Arguments&... a) {
    if constexpr (requires { F(a...); }) {
      return ::new (block) F(a...);
    } else {
      return ::new (block) F{{}, a...};
    }
  }
#pragma GCC diagnostic pop
};

template <class F, class... Arguments>
inline const travelling_code token_of<F, Arguments...>::code{wire_type_of, &__ehdr_start};

template <class F, class... Arguments>
task* make_token(worker& w, const Arguments&... arguments) {
  using token = token_of<F, Arguments...>;
  token* const t = ::new (w.frames.allocate(token::block_bytes()))
      token{{&token::type_of}, std::tuple<Arguments...>(arguments...), 0};
  if (w.profiling) [[unlikely]]
    t->path = path_here(w);
  w.events.tokens.add();
  return t;
}

}  // namespace strata::detail
