// SPDX-License-Identifier: Apache-2.0
// One member of a group: sends to the others and receives from them, by rank, and sees to it that
// all do the same.
//
// Messages of a pair come in the order in which they were sent, and an operation's course depends
// on nothing but N, the root and sizes. So a receive names its source only, and the tag proves that
// the sender is at the same place. A member that leaves tells all others, each of which always has
// a receive for that and looks at it wherever it waits for something else.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/group.hpp"
#include "strata/message.hpp"

namespace strata::messages {

enum class operation : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  scan,
  gather,
  gather_any,
  all_gather,
  all_gather_any,
  scatter,
  scatter_any,
  all_to_all,
  all_to_all_any,
  split,
  leave,  // not an operation: the message of a member that leaves
};

// Who is in a group, by rank: where the program sends what is for them, and where they hear from
// each other. The members on one node share it where all of it is known at once.
struct roster {
  std::vector<endpoint_id> members, peers;
};

class member {
 public:
  member(endpoint& mine, std::vector<endpoint_id> members);
  // Where it hears from others, for now; whom it is with it is told then. So nothing can fail
  // between the one and the other.
  [[nodiscard]] static std::unique_ptr<member> opened();
  [[nodiscard]] endpoint_id here() const noexcept { return own_->id(); }
  void be_among(unsigned rank, std::shared_ptr<roster> all) noexcept;
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member();

  [[nodiscard]] unsigned rank() const noexcept { return rank_; }
  [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(members().size()); }
  [[nodiscard]] std::span<const endpoint_id> members() const noexcept {
    return all_ != nullptr ? std::span<const endpoint_id>(all_->members)
                           : std::span<const endpoint_id>();
  }
  [[nodiscard]] const group_traffic& traffic() const noexcept { return traffic_; }
  void leave(std::string_view why) noexcept;
  // One of those that give the same color; none where this one gives none. An operation.
  [[nodiscard]] std::unique_ptr<member> split(std::optional<unsigned> color, int key);

  // Calls body(), which is one operation. Whatever is thrown, this member has left then.
  template <class Body>
  void perform(operation what, unsigned root, Body&& body) {
    or_leave([&] {
      begin(what, root);
      body();
    });
  }

  // ---- within an operation ----
  // Throws misuse_error.
  void require(bool condition, const char* what);
  // `bytes` stays until finish().
  class sending {
   public:
    sending(transfer&& t, unsigned to) noexcept : transfer_(std::move(t)), to_(to) {}

   private:
    friend class member;
    transfer transfer_;
    unsigned to_;
  };
  [[nodiscard]] sending start_send(unsigned to, std::span<const std::byte> bytes);
  void finish(sending& s);
  void send(unsigned to, std::span<const std::byte> bytes);
  // Exactly that much.
  void receive(unsigned from, std::span<std::byte> into);
  void exchange(unsigned to, std::span<const std::byte> bytes, unsigned from,
                std::span<std::byte> into);
  // into = left op right, the whole of them.
  void combine(const strata::detail::combination& op, const std::byte* left, const std::byte* right,
               std::byte* into, std::size_t bytes);
  // Returns when all have called it: for k = 0, 1, ... a message goes to the member 2^k ranks on,
  // and one comes from the member 2^k ranks back.
  void meet();

 private:
  // What a member says that leaves.
  struct notice {
    std::uint32_t who = 0;
    std::array<char, 252> text{};
  };
  // Operations without an end that waits for all. What they may leave unreceived must find room
  // whatever else waits at its target: at most 2 log2 N messages for each of them, and a window has
  // room for 1,000.
  static constexpr unsigned ahead_max = 32;

  struct placing;
  // Of nobody yet: whom it is with comes later.
  member();
  void open();
  struct round;
  struct findings;
  enum class presence : std::uint8_t { unknown, there, ended };
  void exchange_names(endpoint& mine);
  [[nodiscard]] presence hear_names(endpoint& mine, const round& r, std::uint64_t list,
                                    findings& found);
  void require_all_named(findings& found) const;
  void begin(operation what, unsigned root);
  // Calls body(). If it throws, this member leaves before anything ends that its caller has: what
  // it has begun to receive goes where that is.
  template <class Body>
  void or_leave(Body&& body) {
    try {
      body();
    } catch (...) {
      leave_by_exception();
      throw;
    }
  }
  void begin_receive(unsigned from, std::span<std::byte> into);
  void finish_receive(unsigned from, std::size_t bytes);
  // The tag of a message that ends a chain of that length here.
  [[nodiscard]] message_tag tag_of(unsigned chain) const noexcept;
  void leave_by_exception() noexcept;
  // Closes this member's side; nothing that it has begun can wait for ever then. Who still uses it
  // is told, now or later, who left and why.
  void close_announced() noexcept;
  void close() noexcept;
  [[noreturn]] void disagree(unsigned with, const message_info& m, std::size_t expected);
  // Throws what the one who left has said.
  [[nodiscard]] bool has_heard_of_leaver() const;
  [[noreturn]] void report_leaver();
  template <class Error>
  [[noreturn]] void fail(const Error& e);

  std::shared_ptr<roster> all_;  // null: nobody yet. Changes only while one member alone has it.
  unsigned rank_ = 0;
  int exceptions_;  // in flight when the group was made

  std::optional<endpoint> own_;  // none: this member has left
  std::string why_left_;

  notice notice_;
  // What is waited for: a message, and the notice of one who leaves. The notice's has been there
  // for longer, so it is matched first.
  static constexpr std::size_t awaited = 0, leaver = 1;
  std::array<transfer, 2> receives_;

  operation now_ = operation::barrier;
  unsigned root_ = 0;
  std::uint32_t number_ = 0;  // of operations
  unsigned ahead_ = 0;        // operations since all have met
  group_traffic traffic_;
};

}  // namespace strata::messages
