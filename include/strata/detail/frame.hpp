// SPDX-License-Identifier: Apache-2.0
// Tokens, the frames they become, and what surrounds every fiber.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/object_trip.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/value_room.hpp"
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

// What is in the deque for a token with such arguments.
template <class... Arguments>
inline constexpr unsigned token_mark =
    fit_a_call<Arguments...> ? travelling_mark : travelling_mark | unshelved_mark;

// How it travels.
template <class F, class... Arguments>
struct token_of_values;
template <class F, class... Arguments>
struct token_of_objects;
template <class F, class... Arguments>
using token_travel = std::conditional_t<fit_a_call<Arguments...>, token_of_values<F, Arguments...>,
                                        token_of_objects<F, Arguments...>>;
// What a token has besides its arguments, if they are objects: their bytes, while it leaves.
template <bool CarriesObjects>
struct leaving_token : task {};
template <>
struct leaving_token<true> : task {
  std::unique_ptr<leaving_arguments> leaving{};
};

// A function's identity and its arguments by value. Its block is large enough for the frame that
// takes its place.
template <class F, class... Arguments>
struct token_of : leaving_token<!fit_a_call<Arguments...>> {
  static constexpr bool carries_objects = !fit_a_call<Arguments...>;
  static_assert(refuse_arrays<Arguments...>());
  static_assert((may_travel<Arguments> && ...),
                "a token may travel to another node, so its arguments must be trivially copyable, "
                "or serialisable: include strata/serialize.hpp and cereal's header for their "
                "types, or pass data by global_ptr");
  static_assert((can_be_bytes<Arguments> && ...),
                "a token may travel to another node, and cereal cannot serialise its arguments, or "
                "they have no default constructor: include cereal's header for their types, or "
                "give your own a function serialize()");
  static_assert(std::is_base_of_v<threaded, F>, "token<F>: F must derive from strata::threaded");
  static_assert(alignof(F) <= 16, "frames are aligned to 16 bytes");
  static_assert(((alignof(Arguments) <= 16) && ...), "tokens are aligned to 16 bytes");

  static constexpr std::uint32_t block_bytes() {
    return static_cast<std::uint32_t>(std::max(sizeof(token_of), sizeof(F)));
  }

  using given = std::tuple<Arguments...>;

  // arguments() are made in the block, as stacks are small.
  template <class Make>
  [[gnu::always_inline]] static token_of* place(worker& w, Make&& arguments) {
    void* const block = w.frames.allocate(block_bytes());
    if constexpr (carries_objects) {
      try {
        return ::new (block) token_of{{{&type_of}}, arguments(), 0};
      } catch (...) {
        w.frames.deallocate(block, block_bytes());
        throw;
      }
    } else {
      return ::new (block) token_of{{{&type_of}}, arguments(), 0};
    }
  }

  given arguments;
  std::uint64_t path;  // set when profiling

  static void run(task& t, worker& w) {
    auto* const token = static_cast<token_of*>(&t);
    if (w.failed->load(std::memory_order_relaxed)) [[unlikely]]
      return abandon(t, w);
    if (w.profiling) [[unlikely]]
      path_begin(w, token->path);
    if (F* const f = become_frame(*token, w)) [[likely]] {
      set_type(*f);
      w.events.activations.add();
      run_fiber(w, &type_name<F>, [f] { f->start(); });
    }
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

  static constexpr task_type type_of{&run, nullptr, &abandon, &type_name<F>,
                                     &token_travel<F, Arguments...>::wire};

 private:
  // The frame takes the token's place. Null: it could not be made, and neither is left.
  [[gnu::always_inline]] static F* become_frame(token_of& token, worker& w) noexcept {
    bool is_token = true;
    const auto with = [&](auto& values) {
      std::destroy_at(&token);
      is_token = false;
      return std::apply([&](auto&... a) { return make_frame(&token, std::move(a)...); }, values);
    };
    try {
      // Objects are moved on, large ones by the heap; values are copied.
      if constexpr (!carries_objects) {
        const given values = token.arguments;
        return with(values);
      } else if constexpr (sizeof(given) <= moved_on_stack_max) {
        given values = std::move(token.arguments);
        return with(values);
      } else {
        const auto values = std::make_unique<given>(std::move(token.arguments));
        return with(*values);
      }
    } catch (...) {
      fiber_threw(w);
      if (is_token) std::destroy_at(&token);
      w.frames.deallocate(&token, block_bytes());
      return nullptr;
    }
  }
  static constexpr std::size_t moved_on_stack_max = 1024;

// Frame variables after the parameters have no initializer, as in a function.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
  template <class... Passed>
  static F* make_frame(void* block, Passed&&... a) {
    if constexpr (requires { F(std::forward<Passed>(a)...); }) {
      return ::new (block) F(std::forward<Passed>(a)...);
    } else {
      return ::new (block) F{{}, std::forward<Passed>(a)...};
    }
  }
#pragma GCC diagnostic pop
};

template <class F, class... Arguments>
task* make_token(worker& w, const Arguments&... arguments) {
  using token = token_of<F, Arguments...>;
  token* const t = token::place(w, [&] { return std::tuple<Arguments...>(arguments...); });
  if (w.profiling) [[unlikely]]
    t->path = path_here(w);
  w.events.tokens.add();
  return t;
}

// Queues t, which nobody else has yet. If there is no memory for its place, it is gone.
template <class Queue>
void unless_refused(worker& w, task* t, Queue&& queue) {
  try {
    queue(t);
  } catch (...) {
    t->type->abandon(*t, w);
    throw;
  }
}

template <class F, class... Arguments>
struct token_of_values {
  using packed = packed_arguments<Arguments...>;
  static void pack(const task& t, std::uint16_t, std::byte* out) {
    packed::pack(static_cast<const token_of<F, Arguments...>&>(t).arguments, out);
  }
  static task* unpack(worker& w, const std::byte* in) {
    return token_of<F, Arguments...>::place(w, [in] { return packed::unpack(in); });
  }
  static const travelling_code code;
  static constexpr wire_type wire{packed::bytes, &pack, &unpack, &type_name<F>, &code};
};
template <class F, class... Arguments>
inline const travelling_code token_of_values<F, Arguments...>::code{wire, &__ehdr_start};

// Where it arrives, it has its arguments made on a stack, which may have to wait for them.
template <class F, class... Arguments>
struct token_of_objects {
  using token = token_of<F, Arguments...>;

  static void prepare(task& t, worker& w) {
    auto& self = static_cast<token&>(t);
    self.leaving = std::make_unique<leaving_arguments>(
        w, std::apply(&bytes_of_all<Arguments...>, self.arguments));
  }
  static void pack(const task& t, std::uint16_t here, std::byte* out) {
    static_cast<const token&>(t).leaving->pack_head(here, out);
  }
  static std::span<const std::byte> behind(const task& t) {
    return static_cast<const token&>(t).leaving->behind();
  }

  static void start(received_bytes in) {
    const auto arguments = values_of<Arguments...>(std::move(in));
    worker& w = this_worker();
    w.enable(token::place(w, [&] {
      return std::apply(
          [](value_room<Arguments>&... a) {
            return std::tuple<Arguments...>(std::move(a.value)...);
          },
          *arguments);
    }));
  }
  static void body(task& t) { object_visitor::begin(t, &start); }
  static constexpr task_type kind{&run_on_stack, &body, &object_visitor::abandon, &type_name<F>};
  static task* unpack(worker& w, const std::byte* in) {
    return object_visitor::unpack(w, in, kind);
  }

  static const travelling_code code;
  static constexpr wire_type wire{.argument_bytes = sizeof(object_head),
                                  .pack = &pack,
                                  .unpack = &unpack,
                                  .name = &type_name<F>,
                                  .code = &code,
                                  .take_arguments = &object_visitor::take_behind,
                                  .prepare = &prepare,
                                  .behind = &behind,
                                  .bytes_behind = &bytes_behind_head,
                                  .give_up = &leaving_arguments::give_up};
};
template <class F, class... Arguments>
inline const travelling_code token_of_objects<F, Arguments...>::code{wire, &__ehdr_start};

}  // namespace strata::detail
