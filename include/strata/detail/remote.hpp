// SPDX-License-Identifier: Apache-2.0
// How a fiber's operations reach other nodes, and how a token travels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "strata/detail/task.hpp"
#include "strata/detail/value_room.hpp"

namespace strata::detail {

class worker;
class global_address;
class travelling_code;

// A kind of task that can travel: its arguments' bytes on the wire, and the code that they stand
// for.
struct wire_type {
  std::uint32_t argument_bytes;
  // Writes argument_bytes bytes to `out`, on node `here`; the task itself stays.
  void (*pack)(const task& t, std::uint16_t here, std::byte* out);
  // A task of this kind on w's node, from argument_bytes bytes.
  task* (*unpack)(worker& w, const std::byte* in);
  const char* (*name)();
  const travelling_code* code;
  // For a call, which waits at home for its result: takes result_bytes bytes, or what was thrown.
  // Null for a token, whose home hears of it by signals.
  void (*accept)(task& t, const std::exception_ptr& error, const std::byte* value) = nullptr;
  std::uint32_t result_bytes = 0;
  // For what is made of objects (detail/object_trip.hpp). These take what comes behind
  // argument_bytes, for what unpack() has made; and behind result_bytes, before accept(). Null:
  // nothing comes there.
  void (*take_arguments)(task& t, std::span<const std::byte> more) noexcept = nullptr;
  void (*take_result)(task& t, std::span<const std::byte> more) noexcept = nullptr;
  // Makes the arguments into bytes, before pack(). w: a worker of this node. Calls functions of the
  // program, and throws what they throw. Null: pack() copies them.
  void (*prepare)(task& t, worker& w) = nullptr;
  // After that: what is to go behind what pack() writes. Null: nothing.
  std::span<const std::byte> (*behind)(const task& t) = nullptr;
  // How many bytes those are where it arrives, by what pack() has written.
  std::size_t (*bytes_behind)(const std::byte* in) noexcept = nullptr;
  // Nobody gets what pack() has written, on w's node: lets go of what waits here to be asked for.
  // Null: nothing does, or who waits for the result has it.
  void (*give_up)(worker& w, const std::byte* in) noexcept = nullptr;
};

// The identity of code that travels is the place of its wire_type in the executable, which is the
// same in every process that runs the same build, wherever the loader put it; and a few bits of its
// name, so that a mistake is noticed.
using code_identity = std::uint64_t;

extern "C" {
// The beginning of the executable or shared library that this is compiled into; from the linker.
extern const char __ehdr_start __attribute__((visibility("hidden"), weak));
}

// Makes a wire_type known to this process. One static object for each kind, before main().
class travelling_code {
 public:
  travelling_code(const wire_type& type, const char* module_begin) noexcept;
  [[nodiscard]] code_identity identity() const noexcept { return identity_; }

  // Null when no such code is known: a peer runs another program.
  static const wire_type* find(code_identity identity) noexcept;

 private:
  const wire_type& type_;
  const code_identity identity_;
  const travelling_code* next_;
};

// What a token or a call may carry: several fit into one message.
inline constexpr std::size_t travelling_bytes_max = 16 * 1024;

// Arguments one after the other, without padding.
template <class... Arguments>
struct packed_arguments {
  static constexpr std::uint32_t bytes =
      static_cast<std::uint32_t>((std::size_t{0} + ... + sizeof(Arguments)));

  static void pack(const std::tuple<Arguments...>& values, std::byte* out) {
    std::apply(
        [&](const Arguments&... a) {
          ((std::memcpy(out, std::addressof(a), sizeof(a)), out += sizeof(a)), ...);
        },
        values);
  }
  static std::tuple<Arguments...> unpack(const std::byte* in) {
    const auto take = [&in](auto& a) {
      fill_from(a, in);
      in += sizeof(a);
    };
    if constexpr ((std::is_default_constructible_v<Arguments> && ...)) {
      std::tuple<Arguments...> values;  // where the caller wants them
      std::apply([&](Arguments&... a) { (take(a), ...); }, values);
      return values;
    } else {
      std::tuple<value_room<Arguments>...> rooms;
      const auto taken = [&](value_room<Arguments>&... r) {
        (take(r.value), ...);
        return std::tuple<Arguments...>(std::move(r.value)...);
      };
      return std::apply(taken, rooms);
    }
  }
};

// The other nodes of the job, as a worker sees them. Any thread may call; the calls that carry data
// may block for as long as the receiver has no room, but never on other workers.
class remote_nodes {
 public:
  virtual void signal(global_address slot) = 0;
  virtual void increment(global_address slot, std::uint32_t more) = 0;
  // The value is copied. `slot` is signalled when it is visible at `to`.
  virtual void put(global_address to, const void* value, std::size_t bytes,
                   global_address slot) = 0;
  // `into` stays valid until `slot` is signalled.
  virtual void get(global_address from, void* into, std::size_t bytes, global_address slot) = 0;
  // The token is the callee's now.
  virtual void invoke(worker& w, std::uint16_t node, task* token) = 0;
  // The call stays where it is, and is completed when its result is back. more: what its type's
  // take_arguments() gets, copied.
  virtual void call(worker& w, std::uint16_t node, task& c, std::span<const std::byte> more) = 0;
  virtual void drop_in(global_address box, const void* item, std::size_t bytes) = 0;
  // The result of a call that came from `home`; or what it threw.
  virtual void give_back(global_address home, const std::exception_ptr& error, const void* value,
                         std::size_t bytes) = 0;

 protected:
  ~remote_nodes() = default;
};

// The same for a worker that may have no other nodes, or be none: throws misuse_error then.
void remote_signal(worker& w, global_address slot);
void remote_increment(worker& w, global_address slot, std::uint32_t more);
void remote_put(worker& w, global_address to, const void* value, std::size_t bytes,
                global_address slot);
void remote_get(worker& w, global_address from, void* into, std::size_t bytes, global_address slot);
void remote_invoke(worker& w, std::uint16_t node, task* token);
void remote_drop_in(worker& w, global_address box, const void* item, std::size_t bytes);

// Throws misuse_error: `what` is null.
[[noreturn, gnu::cold]] void refuse_nowhere(const char* what);
// The same: no memory holds so many elements of that size.
[[noreturn, gnu::cold]] void refuse_elements(std::size_t count, std::size_t element_bytes);
template <class T>
std::size_t bytes_of_elements(std::size_t count) {
  if (count > PTRDIFF_MAX / sizeof(T)) [[unlikely]]
    refuse_elements(count, sizeof(T));
  return count * sizeof(T);
}
inline void check_somewhere(const char* what, const void* address) {
  if (address == nullptr) [[unlikely]]
    refuse_nowhere(what);
}

}  // namespace strata::detail
