// SPDX-License-Identifier: Apache-2.0
// One send or receive in progress: what is to be transferred, where it waits, and who waits for it.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "messages/matching.hpp"
#include "strata/detail/parking.hpp"
#include "strata/message.hpp"

namespace strata::detail {
struct stack;
}

namespace strata::messages {

struct port;
struct lane;
class messenger;

enum class outcome : std::uint8_t {
  done,
  cancelled,
  too_large,
  no_memory,  // for a message of any size, which stays
  closed,     // the endpoint has ended
  announced,  // it has ended, and everybody who uses it gets a message that says why
  left,       // the node that it needs has left the job
  over,       // its runtime has ended
  lost
};
enum class action : std::uint8_t {
  send,
  send_synchronously,  // ends with its match
  receive,
  probe,  // a receive that leaves the message there
};

// Who is shown a message where it is, once: endpoint::receive_in_place().
struct onlooker {
  detail::message_look asked;
  bool has_looked = false;
  std::exception_ptr thrown{};  // by what looks
  void look(const message_info& m, std::span<const std::byte> bytes) noexcept;
};

struct request {
  // ---- set before it begins ----
  action what = action::receive;
  messages::messenger* messenger = nullptr;
  port* mine = nullptr;               // receive: where; send: from where
  std::span<std::byte> into{};        // receive
  std::span<const std::byte> from{};  // send
  // Receive: takes a message of any size, instead of `into`. Send: is handed over, and `from` is
  // what it holds.
  std::vector<std::byte>* whole = nullptr;
  // Receive: looks at what is on this node already, of any size, and nothing is copied; `whole` is
  // for what has to be fetched.
  onlooker* looks = nullptr;
  pattern wanted{};
  // Receive: whoever begins it suspends until its end, which saves announcing that afterwards.
  bool waits_at_once = false;
  // Receive: one that does not fit is refused to its sender, as if the endpoint had ended, and does
  // not wait here.
  bool refuses_larger = false;
  // Send that has ended at once: others want the room as well. See turns.hpp.
  bool gives_way = false;
  // Send: all of it. Receive: the target from the beginning; all of what came, once it has ended
  // (also when that is too large).
  message_info info{};

  // ---- where it waits: under the lock of what it waits in ----
  enum class place : std::uint8_t { nowhere, receives, lane, messages, offered };
  place at = place::nowhere;
  std::uint64_t order;              // receive: among those; send that is offered: its number
  port* target = nullptr;           // send within the process: whose messages
  struct arrival* left;             // the same: what it left there, once it has
  std::shared_ptr<struct lane> on;  // send to another node: where it waits for room
  // Its links are at the end, as most are never linked.

  [[nodiscard]] bool is_receive() const noexcept {
    return what == action::receive || what == action::probe;
  }
  [[nodiscard]] pattern as_sent() const noexcept { return {info.source, info.tag}; }
  // Whose doing ends it; none: anybody's. A receive's may stand for all of a node.
  [[nodiscard]] endpoint_id other_end() const noexcept {
    return is_receive() ? wanted.source : info.target;
  }
  // Whether a message of so many bytes can be received; `is_here`: they are on this node; `given`:
  // the vector that holds it and may be taken, if any. Gets the memory for it, so that no match
  // fails for want of it.
  [[nodiscard]] bool has_room_for(std::size_t bytes, bool is_here,
                                  const std::vector<std::byte>* given) noexcept;
  // How it ends where it has none.
  [[nodiscard]] outcome without_room() const noexcept {
    return whole != nullptr ? outcome::no_memory : outcome::too_large;
  }

  // Whether it is a receive that take(), with such a message, ends.
  [[nodiscard]] bool takes(const pattern& message, std::size_t bytes) const noexcept {
    return what == action::receive &&
           (looks != nullptr || (whole == nullptr && bytes <= into.size())) && wanted.fits(message);
  }
  // Copies them into its buffer, or looks at them. `info` is set.
  void take(std::span<const std::byte> bytes) noexcept {
    if (looks != nullptr) return looks->look(info, bytes);
    if (!bytes.empty()) std::memcpy(into.data(), bytes.data(), bytes.size());
  }

  // ---- its end ----
  // Nothing of the request may be touched after finish(): who waits may be gone with it.
  void finish(outcome o) noexcept;
  // The same for a request that nobody else has seen.
  void finish_unseen(outcome o) noexcept {
    note(o);
    word_.store(ended, std::memory_order_relaxed);
  }
  // The same where its runtime has ended: of those who wait, OS threads alone go on.
  void finish_over() noexcept;
  // Of who waits for it, for detail::parking.
  static constexpr std::uint32_t by_task = 1, by_os_thread = 2;
  [[nodiscard]] static std::uint32_t kind_of_caller() noexcept;
  // Acquire: what was transferred. Partner: finish().
  [[nodiscard]] bool is_done() const noexcept {
    return word_.load(std::memory_order_acquire) == ended;
  }
  // Suspends until it has ended, or the deadline: false. Throws what detail::park() throws; then it
  // can be waited for again.
  bool wait(std::int64_t deadline_ns = detail::parking::never);
  // Returns what was transferred, or throws why not.
  [[nodiscard]] const message_info& result() const {
    if (how_ != outcome::done) [[unlikely]]
      throw_end();
    return info;
  }

  // As wait(), for a receive that has been entered into the port whose lock is held: who sees it
  // there finds the stack that waits. The lock is free once the caller is off its stack. False: it
  // is still held, and the caller has to wait() without it.
  [[nodiscard]] bool wait_entered() noexcept;

  // For a wait for several: false if it has ended; otherwise whoever ends it calls
  // unpark(address).
  bool announce_to(const void* address) noexcept;
  void withdraw(const void* address) noexcept;

 private:
  static bool must_wait(void* self);
  static bool commit_wait(detail::stack& s, void* self);
  // What the suspended stack shows to people.
  void describe(detail::stack& s) const noexcept;
  [[nodiscard]] const char* what_for() const noexcept;
  [[noreturn]] void throw_end() const;
  void note(outcome o) noexcept {
    how_ = o;
    if (o == outcome::lost) [[unlikely]]
      keep_loss();
  }
  void keep_loss() noexcept;

  outcome how_ = outcome::done;
  std::exception_ptr loss_;  // a transfer is asked for it after its messenger has ended, too
  // Or the address at which somebody waits for it; or, marked, the stack that does.
  static constexpr std::uintptr_t pending = 0;
  static constexpr std::uintptr_t ended = 1;
  static constexpr std::uintptr_t stack_mark = 2;
  std::atomic<std::uintptr_t> word_{pending};

 public:
  // Set when it is linked, as `order` is: a receive's and that of what has ended by the first, that
  // of a send which waits for room by all.
  match_links<request> links[pattern_shapes];
};

// A message that waits for a receive. What comes first is all that most of them touch.
struct arrival {
  // Few bytes are kept here, which saves an allocation.
  struct few {
    static constexpr std::size_t most = 64;
    std::array<std::byte, most> bytes;
    few() noexcept {}  // nobody reads more than has been written
  };
  struct offered {
    std::uint64_t id = 0;  // on the sender's node; not 0
    std::uint64_t address = 0;
    std::uint64_t mark_address = 0, mark = 0;  // tells the process apart; see process_memory.hpp
    std::uint64_t process = 0;
  };
  // Its bytes, or where they are: with a sender of this process, or of another one.
  std::variant<few, std::vector<std::byte>, request*, offered> body;
  message_info info;
  std::uint32_t charge;  // room that its sender gets back; 0: none was taken
  bool is_kept;          // its bytes are a copy, see keep()
  match_links<arrival> links[pattern_shapes];

  void keep(std::span<const std::byte> bytes) {
    is_kept = true;
    if (bytes.size() > few::most) {
      body.emplace<std::vector<std::byte>>(bytes.begin(), bytes.end());
    } else {
      std::copy(bytes.begin(), bytes.end(), std::get<few>(body).bytes.begin());
    }
  }
  [[nodiscard]] pattern as_sent() const noexcept { return {info.source, info.tag}; }
  [[nodiscard]] request* sender() const noexcept {
    request* const* const r = std::get_if<request*>(&body);
    return r != nullptr ? *r : nullptr;
  }
  [[nodiscard]] const offered* offer() const noexcept { return std::get_if<offered>(&body); }
  // None as long as they are on another node.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    if (const few* const f = std::get_if<few>(&body)) return std::span(f->bytes).first(info.bytes);
    if (const auto* const all = std::get_if<std::vector<std::byte>>(&body)) return *all;
    const request* const r = sender();
    return r != nullptr ? r->from : std::span<const std::byte>();
  }
  // What may be handed over; null: nothing.
  [[nodiscard]] std::vector<std::byte>* whole() noexcept {
    if (auto* const all = std::get_if<std::vector<std::byte>>(&body)) return all;
    const request* const r = sender();
    return r != nullptr ? r->whole : nullptr;
  }
};

// What a transfer throws that ended with outcome::announced.
struct announced_end : endpoint_closed_error {
  using endpoint_closed_error::endpoint_closed_error;
};

// What is thrown where the runtime has ended.
misuse_error after_runtime();

// For people.
std::string text_of(endpoint_id id);
// "from any endpoint of node 3 with tag 7".
std::string text_of(const pattern& p);

}  // namespace strata::messages
