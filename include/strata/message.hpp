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
//
// This header has all of it: what a message is, and a transfer, are in strata/transfer.hpp, the
// names of endpoints in strata/endpoint_id.hpp.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/detail/address.hpp"
#include "strata/detail/elements.hpp"
#include "strata/detail/value_room.hpp"
// IWYU pragma: begin_exports
#include "strata/endpoint_id.hpp"
#include "strata/transfer.hpp"
// IWYU pragma: end_exports

namespace strata {

namespace messages {
class awaited_bytes;
class member;
struct port;
}  // namespace messages

namespace detail {
// What looks at a message where it is.
struct message_look {
  void* self;
  void (*look)(void* self, const message_info& m, std::span<const std::byte> bytes);
};
}  // namespace detail

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
  /// limit of its path (see above) it suspends only while the target has no room, and lets others
  /// of its worker run where several threads want that room; above it, it always waits for the
  /// receive. So in a ring in which each first sends and then receives, nobody
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
    send(to, tag, detail::content_of_one(value));
  }
  /// Returns at once; `bytes` must stay as they are until the transfer has ended. Nothing is kept
  /// of them in between if the message is above the eager limit. Throws misuse_error as send(), and
  /// std::bad_alloc. What becomes of the message the transfer says: its wait() throws
  /// endpoint_closed_error and node_lost_error.
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
  /// As start_send(), errors too, and the transfer ends when the message has been matched with a
  /// receive.
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
  /// The same, and what has come is looked at where it is, not copied: f(const message_info&,
  /// std::span<const std::byte>) is called once, with bytes that are valid until it returns, and
  /// before this does. Bytes above the eager limit of their path, from another node, are fetched
  /// into memory first. Visibility: who calls this sees what f has done, and f what the caller had.
  /// Throws as receive_message(), std::bad_alloc only where bytes have to be fetched; then f has
  /// not been called. Rethrows what f throws; the message is received then as well.
  ///
  ///   double sum = 0;
  ///   mine.receive_in_place([&](const auto& m, std::span<const std::byte> bytes) {
  ///     sum += total_of(bytes.data(), m.count_of<float>());
  ///   });
  ///
  /// f is called by whoever brings the message: the caller, its sender, a worker or a thread of the
  /// runtime that receives for others. So f is short (others' messages wait for it), needs 16 KiB
  /// of stack at most, has no thread's own things, and calls nothing of the runtime: where it would
  /// wait on a worker, misuse_error is thrown there, as in per_worker::use(). The bytes begin at
  /// any address: copy what is to be read as wider values where the processor wants them aligned.
  template <class F>
  requires std::is_invocable_v<F&, const message_info&, std::span<const std::byte>> message_info
  receive_in_place(F&& f, endpoint_id from = any_endpoint, message_tag tag = any_tag) {
    auto look = [&f](const message_info& m, std::span<const std::byte> bytes) {
      std::invoke(f, m, bytes);
    };
    return receive_shown(
        {.self = &look,
         .look =
             [](void* self, const message_info& m, std::span<const std::byte> bytes) {
               (*static_cast<decltype(&look)>(self))(m, bytes);
             }},
        from, tag);
  }
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
    return detail::value_by<T>([&](T& value) { (void)receive_value_into(value, from, tag); });
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
    const message_info m = receive(detail::room_of_one(value), from, tag);
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
  /// the transfer's until that has ended; after an error it may be empty. With wait_for(), a
  /// message of unknown size by a deadline.
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
  /// receive_in_place(), of any f.
  message_info receive_shown(detail::message_look look, endpoint_id from, message_tag tag);
  /// The one message that comes here, from that node: a larger one throws endpoint_closed_error at
  /// its sender, too.
  transfer start_only_receive(std::span<std::byte> buffer, endpoint_id from);
  /// Of the runtime's own messages, with a tag above message_tag_max: as start_send() and
  /// receive_message().
  transfer start_internal_send(endpoint_id to, message_tag tag, std::span<const std::byte> bytes);
  message receive_internal(endpoint_id from, message_tag tag);
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
