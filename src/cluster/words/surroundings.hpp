// SPDX-License-Identifier: Apache-2.0
// What the protocols of a node stand on. The runtime and the simulation each have their own, so the
// protocols are the same in both.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/kinds.hpp"
#include "cluster/words/membership.hpp"
#include "cluster/words/retry_without_memory.hpp"
#include "net/corked.hpp"
#include "net/joint_copies.hpp"
#include "net/transfers.hpp"
#include "strata/detail/worker.hpp"

namespace strata::cluster {

// Sends messages.
class mailer {
 public:
  [[nodiscard]] virtual node_id self() const noexcept = 0;
  // One more than the highest number that a node can have.
  [[nodiscard]] virtual node_id nodes() const noexcept = 0;
  [[nodiscard]] virtual const membership& members() const noexcept = 0;

  // The payload is the concatenation of head and body, copied before the call returns; at most
  // message_bytes_max. Messages of one thread to one node arrive in order. Never blocks: what
  // the receiver has no room for waits in a queue. Throws std::bad_alloc, and has said nothing.
  virtual void post(node_id to, kind k, std::span<const std::byte> head,
                    std::span<const std::byte> body = {}) = 0;
  // The same for what nodes say of themselves, which others rely on, and for which nobody here
  // could be told that it was not said: it is, as soon as there is memory.
  void say(node_id to, kind k, std::span<const std::byte> head,
           std::span<const std::byte> body = {}) {
    retry_without_memory([&] { post(to, k, head, body); });
  }

  // Blocks while much is queued for that node, so that a program cannot send faster than others
  // receive. For the program's own threads; messages are handled meanwhile.
  virtual void wait_for_room(node_id to) = 0;

  // True while it would. For those who wait in another way: visiting_protocol::on_room_made().
  [[nodiscard]] virtual bool is_congested(node_id /*to*/) const noexcept { return false; }

  // What `source` has sent here has made this node's handler post something to `to`. If too much
  // waits for room there, `source` hears of it, whose program is_congested() on its way to `to`
  // then, and waits (see links). Never blocks.
  virtual void posted_for(node_id /*source*/, node_id /*to*/) {}

  // For a loop that posts large messages there: see post_in_pieces().
  [[nodiscard]] virtual net::corked cork(node_id /*to*/, std::span<const std::byte> /*lasting*/) {
    return {};
  }

  // How large blocks of `peer`'s memory come here otherwise than in messages; null: they do not.
  [[nodiscard]] virtual net::transfers* transfers_with(node_id /*peer*/) noexcept {
    return nullptr;
  }

  // All of those there are, whoever comes or goes. For the registration of memory.
  [[nodiscard]] virtual std::vector<net::transfers*> all_transfers() { return {}; }

  // Where both agree who copies what between this node's memory and `peer`'s; null: nowhere.
  [[nodiscard]] virtual net::joint_copies* copies_with(node_id /*peer*/) noexcept {
    return nullptr;
  }

  // For a thread of the program that waits for something of `from`, or of anybody where that is
  // self(): hands one message over, of whomever, that has come already. `useless`: others see to
  // it, or looking would cost more than being woken.
  enum class sight { useless, nothing, found };
  virtual sight look_for_message(node_id /*from*/) noexcept { return sight::useless; }

 protected:
  ~mailer() = default;
};

// Runs tasks.
class local_node {
 public:
  // The task runs on some worker of this node.
  virtual void run_soon(detail::task* t) = 0;
  // A task that can travel and that nobody has begun; null: none.
  virtual detail::task* take_travelling() = 0;
  virtual detail::task* take_travelling_from(detail::worker& w) = 0;
  // The same of those that a shelf is for: what does not travel as objects.
  virtual detail::task* take_shelvable_from(detail::worker& w) = 0;
  // The same of what workers have shared already: none of them is interrupted.
  virtual detail::task* take_shared() = 0;
  // Every worker shares at its next push; what was pushed before can be taken now.
  virtual void ask_everybody() = 0;
  // The same, but for a push that is just happening. Cheap.
  virtual void ask_everybody_soon() { ask_everybody(); }
  // Nobody has anything to do, nor will have by itself: nobody is in a call that blocks, or waits
  // for a time to come.
  [[nodiscard]] virtual bool is_idle() const = 0;
  // Nobody has anything to do now.
  [[nodiscard]] virtual bool is_still() const = 0;
  // What waits to be run here, roughly.
  [[nodiscard]] virtual std::uint32_t load() const = 0;
  // The computation fails.
  virtual void fail(std::exception_ptr error) = 0;
  // It moves nowhere any more, and those who wait here can be told. With `forget` the node
  // forgets the failure as soon as they have been.
  virtual void settle(bool forget) = 0;
  // Whose frames are used while a message is handled (one at a time).
  virtual detail::worker& network_worker() = 0;

 protected:
  ~local_node() = default;
};

class clock {
 public:
  [[nodiscard]] virtual std::int64_t now_ns() const = 0;

 protected:
  ~clock() = default;
};

// Messages that carry work: when all nodes have as many received as sent, and none has anything to
// do, the computation is over. `sent` is raised before the message can arrive, `received` after it
// has been dealt with.
struct work_counts {
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> received{0};
};

// A protocol of somebody who stands above the cluster, and whom the runtime introduces.
class visiting_protocol {
 public:
  // Before any message. same_host: by node.
  virtual void join(mailer& mail, local_node& here, work_counts& counts,
                    const std::vector<bool>& same_host) = 0;
  // False: not one of its kinds. Throws malformed, misuse_error. It counts what carries work.
  virtual bool on_message(node_id from, kind k, reader r) = 0;
  // See net::receiver. Also once a node is lost.
  virtual void on_arrived(node_id, std::uint64_t /*number*/, bool /*whole*/) {}
  virtual void on_given(node_id, std::uint64_t /*own_number*/, bool /*whole*/) {}
  // In an elastic job: a node comes; one has left, and no one waits for it any more; this one is
  // about to leave, and nobody shall wait here.
  virtual void on_coming(node_id, bool /*same_host*/) {}
  virtual void on_left(node_id) {}
  virtual void on_leaving() {}
  // After any change of who takes part, and what was said of it.
  virtual void members_have_changed() noexcept {}
  // By any thread: the program should not send somewhere, see mailer::is_congested(); and that may
  // be over. Whoever is told the first may hold a lock of who has posted something.
  virtual void on_congestion() noexcept {}
  virtual void on_room_made() {}
  // Whether it has something that keeps this node from leaving; and, before the node leaves, what
  // node 0 is to have of it.
  [[nodiscard]] virtual bool holds_something() { return false; }
  virtual void hand_over() {}
  // A node is lost, and the job with it: whoever waits for anything of another node throws `error`.
  virtual void on_lost(const std::exception_ptr& error) = 0;
  // For people: who waits for what.
  [[nodiscard]] virtual std::string describe_waits() = 0;

 protected:
  ~visiting_protocol() = default;
};

// Why workers are to look, when they share, whether there is something for other nodes.
class hunger {
 public:
  static constexpr std::uint32_t wishes = 1;  // others wait for work of this node
  static constexpr std::uint32_t shelf = 2;   // there is room on this node's shelf

  // Seq_cst: said, and then looked for what is there. Partner: whoever shares, and then looks here.
  void add(std::uint32_t reason) noexcept { reasons_.fetch_or(reason, std::memory_order_seq_cst); }
  void remove(std::uint32_t reason) noexcept {
    reasons_.fetch_and(~reason, std::memory_order_seq_cst);
  }
  [[nodiscard]] bool is_for(std::uint32_t reason) const noexcept {
    return (reasons_.load(std::memory_order_seq_cst) & reason) != 0;
  }
  [[nodiscard]] const std::atomic<std::uint32_t>& reasons() const noexcept { return reasons_; }

 private:
  std::atomic<std::uint32_t> reasons_{0};
};

}  // namespace strata::cluster
