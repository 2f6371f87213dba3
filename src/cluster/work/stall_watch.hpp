// SPDX-License-Identifier: Apache-2.0
// A stall: nothing moves on any node, and yet somebody waits for others. Node 0 suspects one when
// nothing has moved there for long and something of it waits; then it asks all nodes, in rounds,
// what they have done so far and who waits there for what. A node answers soon, whatever its
// workers do, but not while it handles the question: to look at all who wait takes longer than
// messages may lie there.
//
//   all answer and are idle, and nobody waits   two rounds with the same counts, as many messages
//   for the world outside, or somebody does     received as sent: a stall, as nothing moved between
//   for fibers                                  them (see quiescence.hpp) and nothing can
//   the same, but messages are on their way,    a stall when nothing but that was seen for as long
//   or somebody does not answer                 as node 0 has waited before it asked; the report
//                                               says which
//   else                                        none: node 0 watches on, from the beginning
//
// A round ends when all have answered, or after a while. So whoever dies or is cut off is named by
// the report, and does not keep it back; a job that is at work is never said to be stalled.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"
#include "cluster/work/quiescence.hpp"

namespace strata::cluster {

class stall_watch {
 public:
  enum class waits : std::uint8_t {
    for_nothing,
    for_others,
    for_the_world,  // for what may come from outside the job, and perhaps for others
    for_fibers,     // whatever else waits: nothing from outside signals those
  };
  // Of this node, now.
  struct observation {
    bool is_idle = true;         // nobody has anything to do, or will have after some time
    std::uint64_t progress = 0;  // grows with whatever the program does here
  };
  // The node.
  class hands {
   public:
    // Called often.
    [[nodiscard]] virtual observation observe() = 0;
    // The next two take a microsecond or more for everybody who waits; no lock is held.
    [[nodiscard]] virtual waits who_waits_here() = 0;
    // For people: who waits here for what, in lines, the first of which names the node.
    [[nodiscard]] virtual std::string describe_waits_here() = 0;
    // On node 0, once until something has moved again: there is a stall.
    virtual void tell_of_stall(const std::string& report) = 0;
    // By who handles messages, perhaps several times: somebody else is to call send_answer() soon.
    virtual void answer_soon() = 0;

   protected:
    ~hands() = default;
  };
  struct settings {
    std::int64_t after_ns = 0;  // without progress; 0: there are no stalls
    // Nodes that compute hear nothing, so silence proves nothing (polling reception).
    bool deaf_while_busy = false;
  };

  stall_watch(mailer& mail, hands& here, const work_counts& counts, const quiescence& quiet,
              const clock& time, const settings& s);

  // How often on_time() is to be called on node 0, at least; INT64_MAX: never.
  [[nodiscard]] std::int64_t look_ns() const noexcept;
  // By one thread, which handles no message then.
  void on_time();
  // Of node 0's questions the last, if it has not been answered. Not while a message is handled;
  // any number of threads.
  void send_answer();
  // Somebody has come or left: what was being asked says nothing any more.
  void members_have_changed();
  // For good: a node is lost, and whoever waits hears of that.
  void stop();

  // False: not one of ours. Throws malformed.
  bool on_message(node_id from, kind k, reader r);

  // Rounds so far (node 0).
  [[nodiscard]] std::uint32_t rounds() const;

 private:
  struct question {
    std::uint32_t round;
    std::uint32_t wants_text;
  };
  static_assert(std::has_unique_object_representations_v<question>);
  struct answer {
    observation seen{};
    waits here = waits::for_nothing;
    std::uint64_t sent = 0, received = 0;
    std::string text{};

    // Whether nothing has happened between two of them.
    [[nodiscard]] bool is_as(const answer& before) const noexcept {
      return seen.progress == before.seen.progress && sent == before.sent &&
             received == before.received;
    }
  };
  using answers = std::map<node_id, answer>;
  enum class state { watching, asking, pausing, told, over };

  // Where there is none it begins anew: nobody else has anything of that. Without the lock.
  template <class Look>
  void look_while_there_is_memory(Look look);
  void look_on_time();
  void on_answer(node_id from, reader r);
  // Without the lock, which handlers of messages wait for.
  [[nodiscard]] answer look_here(bool with_text);
  // With the lock.
  void watch_on(std::int64_t now_ns);
  void ask(std::int64_t now_ns, answer mine);
  // Messages that carry work, sent by those who have answered and received by none of them.
  [[nodiscard]] std::int64_t on_their_way() const;
  [[nodiscard]] std::string judge(std::int64_t now_ns);
  [[nodiscard]] std::string report(std::int64_t unmoved_ns) const;
  [[nodiscard]] std::string describe_round(std::int64_t unmoved_ns) const;

  mailer& mail_;
  hands& here_;
  const work_counts& counts_;
  const quiescence& quiet_;  // knows what those who have left had sent and received
  const clock& time_;
  const settings settings_;

  mutable std::mutex mutex_;
  state state_ = state::watching;
  std::uint64_t progress_seen_ = 0;
  std::int64_t moved_at_;  // here, or anywhere as far as is known
  std::uint32_t round_ = 0;
  std::int64_t round_at_ = 0;    // when it began, or the next one does
  std::int64_t unmoved_at_ = 0;  // when the first round began whose answers were as these
  std::set<node_id> awaited_;
  answers now_, before_;
  work_sums left_;  // of those who had left when it began: who leaves later is in now_
  std::optional<question> asked_;  // by node 0, and not answered so far
};

}  // namespace strata::cluster
