// SPDX-License-Identifier: Apache-2.0
// Messages between any threads of a job, wherever they are. After pCoR
// (docs/architecture.md#sources).
//
//   std::vector<double> numbers(100);
//   strata::endpoint& mine = strata::this_thread::endpoint();
//   mine.send(other, 7, numbers);           // they may change now
//   const auto m = mine.receive(numbers);   // from anybody, any tag
//   use(numbers, m.count_of<double>());
//
// An endpoint is where messages arrive. Any number of them share the node's few connections.
// Waiting suspends the calling thread or task, not its worker; nothing here may be called in a
// fiber.
//
// Order: messages of one thread from one endpoint to another are matched in the order in which they
// were sent. Visibility: who has received a message sees what its sender did before sending it.
// Memory: a node keeps at most 320 KiB of unreceived messages for each pair of another node and an
// endpoint, where each counts as its bytes and 64 more. Of each up to 288 are kept besides its
// bytes, so that is 1,440 KiB of memory in messages without any, 386 KiB in messages of 1 KiB. From
// its own process an endpoint keeps messages until they are 64 KiB, counted likewise; the one that
// gets there may be a std::vector of any size that was handed over. Whoever sends more waits, or
// its transfer does; nothing is dropped. Where that much is kept and a receive or a probe asks for
// what still waits with its sender, 288 bytes are kept for that besides, and for each message that
// its endpoint has begun to send before it; its own bytes stay with the sender.
//
// Paths, chosen by location: within a process the bytes are copied once, or not at all when they
// are handed over as a std::vector; between processes of one host messages above the eager limit
// are copied once, by the receiver, where the kernel permits it (process_vm_readv); everything else
// goes through the transports of the job.
//
// Eager limit: 64 KiB between processes that share memory (the transport shm); 16 KiB within a
// process, and over TCP, UDP and UCX. Up to it a message leaves its sender before it is received,
// as long as the target has room; a larger one stays until it is received, unless it is handed over
// within a process. What must work wherever its threads are counts on eager_bytes_everywhere.
//
// An endpoint or a transfer may outlive its runtime. It is there to be destroyed or moved then:
// what it had in progress has ended, and what is called throws misuse_error, says how a transfer
// had ended, or receives what had come before.
#pragma once
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/elements.hpp"
#include "strata/detail/parking.hpp"
#include "strata/error.hpp"
#include "strata/global_ptr.hpp"

namespace strata {

namespace messages {
class awaited_bytes;
class member;
struct port;
struct request;
}  // namespace messages

namespace detail {
// Throws misuse_error: so many bytes are no whole number of elements of that size.
[[noreturn, gnu::cold]] void refuse_count(std::size_t bytes, std::size_t element_bytes);
}  // namespace detail

/// The name of an endpoint in its job: a value of 8 bytes that can travel in tokens, calls and
/// messages. Never used twice within a job, up to 16 million endpoints made at one place of a
/// node's table.
class endpoint_id {
 public:
  /// No endpoint; as a source in a receive: any (any_endpoint).
  constexpr endpoint_id() noexcept = default;
  /// Where it lives.
  [[nodiscard]] constexpr node_id_t node() const noexcept {
    return static_cast<node_id_t>(bits_ >> 48);
  }
  /// Whether it stands for all endpoints of node(), as any_endpoint_on() makes it.
  [[nodiscard]] constexpr bool is_any_on_node() const noexcept {
    return (bits_ & within_node) == any_on_node;
  }
  /// Whether it names an endpoint, or all of a node.
  constexpr explicit operator bool() const noexcept { return bits_ != 0; }
  friend constexpr auto operator<=>(endpoint_id, endpoint_id) noexcept = default;

  /// Everything as one word, for the runtime and for hashing.
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  /// The inverse of bits().
  static constexpr endpoint_id from_bits(std::uint64_t bits) noexcept {
    endpoint_id id;
    id.bits_ = bits;
    return id;
  }

 private:
  friend constexpr endpoint_id any_endpoint_on(node_id_t node) noexcept;
  // What tells endpoints of one node apart; and what none of them has there, since the lowest 24
  // bits count from 1.
  static constexpr std::uint64_t within_node = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t any_on_node = std::uint64_t{1} << 24;

  std::uint64_t bits_ = 0;
};

/// As a source in a receive or a probe: any endpoint of the job.
inline constexpr endpoint_id any_endpoint{};

/// As a source in a receive or a probe: any endpoint of that node, those that it makes later
/// included. A receive from a node that the job cannot have throws misuse_error; from one that has
/// left the job, or leaves before it is answered, node_left_error, once nothing of what came from
/// there fits. In an elastic job a node that has not come yet is waited for. Sending to it throws
/// misuse_error.
///
///   message m = mine.receive_message(strata::any_endpoint_on(3), 7);
[[nodiscard]] constexpr endpoint_id any_endpoint_on(node_id_t node) noexcept {
  return endpoint_id::from_bits(std::uint64_t{node} << 48 | endpoint_id::any_on_node);
}

/// What a message is about, up to the program: 0 to message_tag_max.
using message_tag = std::uint32_t;
/// The largest tag of a program. Larger ones are the runtime's own: a send with one throws
/// misuse_error, and so does a receive or a probe that asks for one; who leaves the tag open never
/// gets a message with one.
inline constexpr message_tag message_tag_max = 0xFFFF'FEFFU;
/// A message of so many bytes is below the eager limit of every path: see above.
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
  /// has answered, whatever its threads do, or is lost.
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
  /// The same with a limit: nothing when the time is over first, and the transfer goes on.
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
/// The same with a limit: nothing when the time is over first, and all of them go on.
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
  return std::as_bytes(std::span(&value, 1));
}
/// The bytes of the elements that a std::vector, std::span, std::string, std::string_view or
/// another contiguous range refers to. They are trivially copyable and no addresses.
template <detail::elements_elsewhere R>
std::span<const std::byte> bytes_of(const R& values) noexcept {
  return detail::content_of(values);
}

/// Where messages arrive, on the node that makes it. Any thread of that node may send from it and
/// receive from it; when several do, which of them gets a message is up to their patterns.
class endpoint {
 public:
  /// Throws misuse_error outside a runtime, error when the node has 16 million.
  endpoint();
  /// Keeps its id. Of `other` nothing is left: it may be destroyed or assigned to.
  endpoint(endpoint&& other) noexcept;
  /// The same; what *this was before ends first, as in the destructor.
  endpoint& operator=(endpoint&& other) noexcept;
  /// Messages that have not been received are dropped; receives in progress, and sends to here,
  /// throw endpoint_closed_error.
  ~endpoint();

  /// Its name, to be told to those who send to it.
  [[nodiscard]] endpoint_id id() const noexcept { return id_; }

  // ---- sending ----
  /// Returns when `bytes` may change: the message has been copied or received. Up to the eager
  /// limit of its path (see above) it suspends only while the target has no room; above it, it
  /// always waits for the receive. So in a ring in which each first sends and then receives, nobody
  /// receives large messages: begin with start_receive(), or send with start_send(). Throws
  /// endpoint_closed_error if the target is known to have ended (with certainty if it is of this
  /// process, or the message had to wait for it; else flush() tells), node_lost_error, misuse_error
  /// for a tag above message_tag_max, any_endpoint_on(), or no such node.
  void send(endpoint_id to, message_tag tag, std::span<const std::byte> bytes);
  /// Hands the bytes over: within a process nothing is copied. `bytes` is empty afterwards, and as
  /// it was where this throws.
  void send(endpoint_id to, message_tag tag, std::vector<std::byte>&& bytes);
  /// The elements of a std::vector, std::array, std::span, plain array, std::string or another
  /// contiguous range, side by side: trivially copyable, and no addresses. (A string literal is an
  /// array that ends with a zero; std::string_view("text") does not have it.) Otherwise as above.
  template <detail::value_range R>
  void send(endpoint_id to, message_tag tag, const R& values) {
    send(to, tag, detail::content_of(values));
  }
  /// One value. A pointer, std::span or another address does not compile.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void send_value(endpoint_id to, message_tag tag, const T& value) {
    detail::refuse_addresses<T>();
    send(to, tag, std::as_bytes(std::span(&value, 1)));
  }
  /// Returns at once; `bytes` must stay as they are until the transfer has ended. Nothing is kept
  /// of them in between if the message is above the eager limit.
  [[nodiscard]] transfer start_send(endpoint_id to, message_tag tag,
                                    std::span<const std::byte> bytes);
  /// The same with elements, as for send(). They must stay as they are, so a container that ends
  /// with the call does not compile.
  template <detail::lasting_range R>
  [[nodiscard]] transfer start_send(endpoint_id to, message_tag tag, R&& values) {
    return start_send(to, tag, detail::content_of(values));
  }
  // Of bytes one would become a span of them.
  template <detail::passing_range R>
  transfer start_send(endpoint_id to, message_tag tag, R&& values) = delete;
  /// As start_send(), and the transfer ends when the message has been matched with a receive.
  [[nodiscard]] transfer start_synchronous_send(endpoint_id to, message_tag tag,
                                                std::span<const std::byte> bytes);
  /// The same with elements.
  template <detail::lasting_range R>
  [[nodiscard]] transfer start_synchronous_send(endpoint_id to, message_tag tag, R&& values) {
    return start_synchronous_send(to, tag, detail::content_of(values));
  }
  template <detail::passing_range R>
  transfer start_synchronous_send(endpoint_id to, message_tag tag, R&& values) = delete;
  /// Returns when what the calling thread has sent to `to` before has arrived there, where it is
  /// received or waits for that; what start_send() has begun and has no room yet is not sent.
  /// Suspends for a call to its node, which a worker there answers. Throws endpoint_closed_error if
  /// the target has ended by then: what it had not received, nobody will; and later sends throw the
  /// same at once. Throws node_lost_error, and misuse_error as send(), and outside a runtime.
  ///
  ///   mine.send(to, 7, orders);
  ///   mine.flush(to);  // there is somebody who has them, or an error
  void flush(endpoint_id to);

  // ---- receiving ----
  // `from` is one endpoint, any_endpoint_on() a node, or any_endpoint. Of several receives that a
  // message fits, whatever they leave open, the one that began first gets it.
  /// The oldest message that fits the pattern, once there is one, into `buffer`. Suspends. Throws
  /// message_too_large_error, which leaves the message there; node_lost_error, if the job has lost
  /// a node; node_left_error, if the only one that could answer has left it; misuse_error for
  /// any_endpoint_on() no node of the job, and for a tag above message_tag_max but any_tag.
  message_info receive(std::span<std::byte> buffer, endpoint_id from = any_endpoint,
                       message_tag tag = any_tag);
  /// The same whatever its size; bytes that were handed over within a process are not copied.
  /// Throws std::bad_alloc where there is no memory for the message, which leaves it there.
  message receive_message(endpoint_id from = any_endpoint, message_tag tag = any_tag);
  /// As receive(), into elements such as send() takes: at most as many as `values` has, which does
  /// not grow. count_of<T>() of what is returned says how many came; the others stay as they are.
  /// Throws misuse_error, too, if the size is no multiple of an element's; the message is then
  /// lost.
  template <detail::lasting_room R>
  message_info receive(R&& values, endpoint_id from = any_endpoint, message_tag tag = any_tag) {
    const message_info m = receive(detail::room_of(values), from, tag);
    (void)m.template count_of<std::ranges::range_value_t<R>>();
    return m;
  }
  /// One value, which must have T's size: otherwise throws message_too_large_error, or misuse_error
  /// for a smaller message, which is then lost.
  template <class T>
  requires std::is_trivially_copyable_v<T> T receive_value(endpoint_id from = any_endpoint,
                                                           message_tag tag = any_tag) {
    T value;
    (void)receive_value_into(value, from, tag);
    return value;
  }
  /// The same into `value`, and says where it comes from and with which tag:
  ///
  ///   int n;
  ///   const auto m = mine.receive_value_into(n);
  ///   mine.send_value(m.source, m.tag, n * n);
  template <class T>
  requires std::is_trivially_copyable_v<T> message_info
  receive_value_into(T& value, endpoint_id from = any_endpoint, message_tag tag = any_tag) {
    detail::refuse_addresses<T>();
    const message_info m = receive(std::as_writable_bytes(std::span(&value, 1)), from, tag);
    if (m.bytes != sizeof(T)) refuse_size();
    return m;
  }
  /// Returns at once; `buffer` is the transfer's until it has ended. Throws misuse_error as
  /// receive(), whose other errors wait() throws.
  [[nodiscard]] transfer start_receive(std::span<std::byte> buffer, endpoint_id from = any_endpoint,
                                       message_tag tag = any_tag);
  /// The same into elements. count_of<T>() of what wait() returns says how many came, or throws
  /// misuse_error.
  template <detail::lasting_room R>
  [[nodiscard]] transfer start_receive(R&& values, endpoint_id from = any_endpoint,
                                       message_tag tag = any_tag) {
    return start_receive(detail::room_of(values), from, tag);
  }
  /// The same whatever its size: `content` becomes what has come, as of receive_message(), and is
  /// the transfer's until that has ended. With wait_for(), a message of unknown size by a deadline.
  [[nodiscard]] transfer start_receive_message(std::vector<std::byte>& content,
                                               endpoint_id from = any_endpoint,
                                               message_tag tag = any_tag);

  /// The oldest message that fits and has not been received, if there is one; it stays. Never
  /// blocks; looks for messages as transfer::test(). If there is none, throws node_lost_error and
  /// misuse_error as receive().
  [[nodiscard]] std::optional<message_info> probe(endpoint_id from = any_endpoint,
                                                  message_tag tag = any_tag);
  /// Suspends until there is one. Another thread that receives here may be faster. Throws
  /// node_lost_error and misuse_error as receive().
  message_info wait_probe(endpoint_id from = any_endpoint, message_tag tag = any_tag);

 private:
  friend class messages::member;
  friend class messages::awaited_bytes;
  /// The one message that comes here, from that node: a larger one throws endpoint_closed_error at
  /// its sender, too.
  transfer start_only_receive(std::span<std::byte> buffer, endpoint_id from);
  /// Two of the runtime's own messages, with a tag above message_tag_max: sends one, and receives
  /// one.
  message exchange_internal(endpoint_id to, std::span<const std::byte> bytes, endpoint_id from,
                            message_tag tag);
  /// Ends it, and tells its users that a message from elsewhere says why.
  void close_announced() noexcept;
  [[noreturn]] static void refuse_size();
  messages::port& open_port() const;

  messages::port* port_ = nullptr;
  endpoint_id id_;
};

namespace this_thread {
/// The calling thread's or task's own endpoint, made at the first call and ended with the thread.
/// Throws misuse_error outside a runtime and in a fiber, error as endpoint(), std::bad_alloc.
///
/// Whose it is in a branch of a fork, or a child of a task_scope, depends on where that runs: on
/// the stack of the task that forked it is that task's; stolen, it has one of its own, which ends
/// with it. Ask before the fork, and hand the reference on; or let the branch make an endpoint.
strata::endpoint& endpoint();
}  // namespace this_thread

}  // namespace strata

template <>
struct std::hash<strata::endpoint_id> {
  std::size_t operator()(strata::endpoint_id id) const noexcept {
    return std::hash<std::uint64_t>()(id.bits());
  }
};
