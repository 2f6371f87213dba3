// SPDX-License-Identifier: Apache-2.0
// What is known of a message, and sends and receives that are in progress. Endpoints begin them:
// strata/message.hpp.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/elements.hpp"
#include "strata/endpoint_id.hpp"
#include "strata/error.hpp"

namespace strata {

namespace messages {
struct request;
}

namespace detail {
// Throws misuse_error: so many bytes are no whole number of elements of that size.
[[noreturn, gnu::cold]] void refuse_count(std::size_t bytes, std::size_t element_bytes);
}  // namespace detail

/// What a message is about, up to the program: 0 to message_tag_max.
using message_tag = std::uint32_t;
/// The largest tag of a program. Larger ones are the runtime's own: a send with one throws
/// misuse_error, and so does a receive or a probe that asks for one; who leaves the tag open never
/// gets a message with one.
inline constexpr message_tag message_tag_max = 0xFFFF'FEFFU;
/// A message of so many bytes is below the eager limit of every path:
/// see strata/message.hpp.
inline constexpr std::size_t eager_bytes_everywhere = std::size_t{16} << 10;

/// In a receive: any tag up to message_tag_max. Not to be sent.
inline constexpr message_tag any_tag = UINT32_MAX;

/// What is known of a message: where it comes from, where it went, and its size in bytes.
struct message_info {
  endpoint_id source{};
  endpoint_id target{};
  message_tag tag = 0;
  std::size_t bytes = 0;

  /// How many values of type T it holds. Throws misuse_error if its size is no multiple of theirs.
  template <class T>
  [[nodiscard]] std::size_t count_of() const {
    if (bytes % sizeof(T) != 0) [[unlikely]]
      detail::refuse_count(bytes, sizeof(T));
    return bytes / sizeof(T);
  }
};

/// A message with its bytes.
struct message : message_info {
  std::vector<std::byte> content{};
};

/// The endpoint at the other side has ended, or never was.
class endpoint_closed_error : public error {
 public:
  /// For the runtime.
  endpoint_closed_error(endpoint_id which, const std::string& what) : error(what), which_(which) {}
  /// The endpoint that has ended.
  [[nodiscard]] endpoint_id which() const noexcept { return which_; }

 private:
  endpoint_id which_;
};

/// A message is larger than the buffer of the receive that it fits. It is still there, to be
/// received with more room.
class message_too_large_error : public error {
 public:
  /// For the runtime.
  message_too_large_error(const message_info& which, const std::string& what)
      : error(what), which_(which) {}
  /// The message, with its size.
  [[nodiscard]] const message_info& which() const noexcept { return which_; }

 private:
  message_info which_;
};

class transfer;
namespace detail {
// Nothing: the deadline came first.
std::optional<std::size_t> wait_any_until_ns(std::span<transfer> transfers,
                                             std::int64_t deadline_ns);
}  // namespace detail

/// A send or a receive in progress. Movable; used by one thread at a time.
class transfer {
 public:
  /// None.
  transfer() noexcept = default;
  transfer(transfer&&) noexcept = default;
  /// As the destructor does, first.
  transfer& operator=(transfer&& other) noexcept;
  /// Cancels it if it has not ended; if it has been matched already, waits for its end. A send that
  /// waits on another node to be received is taken back from there: that suspends until the node
  /// has answered, whatever its threads do, or is lost. Where it would have to wait and nobody may,
  /// in a fiber or within per_worker::use(), it ends the program, by std::terminate().
  ~transfer();

  /// False for a default-constructed or moved-from transfer, and after wait().
  [[nodiscard]] bool valid() const noexcept { return request_ != nullptr; }
  /// Whether it has ended: wait() will not suspend. Never blocks; where workers look for messages,
  /// one of 16 calls that find it in progress looks itself, in a thread or task with 64 KiB of
  /// stack left. A loop around it keeps its worker from all other threads, the one that is to send
  /// here perhaps: let it yield. Throws misuse_error if not valid().
  [[nodiscard]] bool test() const;
  /// Suspends the caller until it has ended, and returns what was transferred; not valid()
  /// afterwards. Throws endpoint_closed_error, message_too_large_error, std::bad_alloc (as
  /// receive_message()), node_lost_error, misuse_error (a handle used twice).
  message_info wait();
  /// The same with a limit: nothing when the time is over first, and the transfer goes on. So it
  /// does where there is no thread or memory for a deadline, which throws std::system_error or
  /// std::bad_alloc: valid() is still true then.
  template <class Rep, class Period>
  std::optional<message_info> wait_for(const std::chrono::duration<Rep, Period>& time) {
    return wait_until_ns(detail::deadline_after(time));
  }
  /// The same until `time`, on any clock.
  template <class Clock, class Duration>
  std::optional<message_info> wait_until(const std::chrono::time_point<Clock, Duration>& time) {
    std::optional<message_info> ended;
    detail::attempt_until(time, [&](std::int64_t deadline_ns) {
      ended = wait_until_ns(deadline_ns);
      return ended.has_value();
    });
    return ended;
  }
  /// True if it had not begun, and never will: for a receive, no message has been matched; for a
  /// send, the message still waits on this node. Not valid() afterwards then. False: wait() for it.
  /// A message above the eager limit, or a synchronous one, to another node has begun once there is
  /// room for its name there: it ends when it is received, or the target ends, or is taken back by
  /// the destructor. Never blocks. Throws misuse_error if not valid().
  bool cancel();

 private:
  friend class endpoint;
  friend std::optional<std::size_t> detail::wait_any_until_ns(std::span<transfer> transfers,
                                                              std::int64_t deadline_ns);
  struct release {
    void operator()(messages::request* r) const noexcept;
  };
  explicit transfer(messages::request* r) noexcept : request_(r) {}
  std::optional<message_info> wait_until_ns(std::int64_t deadline_ns);

  std::unique_ptr<messages::request, release> request_;
};

/// Suspends the caller until one of them has ended, and returns which; wait() on it does not
/// suspend. Those that are not valid() are passed over. Throws misuse_error if none is valid().
std::size_t wait_any(std::span<transfer> transfers);
/// The same with a limit: nothing when the time is over first, and all of them go on. Throws
/// std::system_error or std::bad_alloc, as wait_for() of one.
template <class Rep, class Period>
std::optional<std::size_t> wait_any_for(std::span<transfer> transfers,
                                        const std::chrono::duration<Rep, Period>& time) {
  return detail::wait_any_until_ns(transfers, detail::deadline_after(time));
}
/// The same until `time`, on any clock.
template <class Clock, class Duration>
std::optional<std::size_t> wait_any_until(std::span<transfer> transfers,
                                          const std::chrono::time_point<Clock, Duration>& time) {
  std::optional<std::size_t> ended;
  detail::attempt_until(time, [&](std::int64_t deadline_ns) {
    ended = detail::wait_any_until_ns(transfers, deadline_ns);
    return ended.has_value();
  });
  return ended;
}
/// wait() for all valid ones. What was transferred, in their order; message_info() for those that
/// are not valid(). Rethrows the first error when all have ended.
std::vector<message_info> wait_all(std::span<transfer> transfers);

/// The bytes of a value: a number, a structure, an array. T is trivially copyable; a pointer, or
/// another address, does not compile.
template <detail::whole_value T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  detail::refuse_addresses<T>();
  return detail::content_of_one(value);
}
/// The bytes of the elements that a std::vector, std::span, std::string, std::string_view or
/// another contiguous range refers to. They are trivially copyable and no addresses.
template <detail::elements_elsewhere R>
std::span<const std::byte> bytes_of(const R& values) noexcept {
  return detail::content_of(values);
}

}  // namespace strata
