// SPDX-License-Identifier: Apache-2.0
// What the networks of a running job cost, measured again from time to time. (Requirement P12.)
//
//   0 -> member   measure_again   its number
//   member -> 0   measured_again  the same, and what its networks cost now
//
// Each member measures what it would have measured when the job began, all at once; node 0
// compares. A machine that has other things to do answers late, and a network that somebody fills
// for a while is slow: so a cost is believed when it was at least twice as high, or half, in two
// surveys in a row, and of the two the one that is nearer to what was believed before. What nobody
// has measured yet, as a node has come from another host, is believed at once.
//
// A state machine like the survey itself; called with the inbox.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cluster/ways/survey.hpp"
#include "cluster/ways/way_plan.hpp"
#include "cluster/words/surroundings.hpp"

namespace strata::cluster {

// Node 0's: what is believed, and what is only suspected.
class believed_costs {
 public:
  // A network is another one when it costs so many times as much as before, or less.
  static constexpr std::int64_t factor = 2;

  using host_of = std::function<std::uint16_t(node_id)>;
  explicit believed_costs(host_of host) : host_(std::move(host)) {}

  // Of the beginning: of two hosts the first that is said.
  void begin_with(const way_plan::measurement& m) { believed_.emplace(key_of(m), m); }
  // What a survey has found; once in each for two hosts. True: it is believed now.
  bool look_at(const way_plan::measurement& m);
  // All that is believed and was not at the beginning, or was otherwise.
  [[nodiscard]] std::vector<way_plan::measurement> changed() const;

 private:
  using key = std::pair<std::uint16_t, std::uint16_t>;  // two hosts
  [[nodiscard]] key key_of(const way_plan::measurement& m) const;
  bool believe(const key& k, const way_plan::measurement& m);

  host_of host_;
  std::map<key, way_plan::measurement> believed_, suspected_;
  std::set<key> changed_;  // at most way_plan::measured_max
};

class remeasuring final : public survey::line {
 public:
  class hands {
   public:
    // The networks that this node measures.
    [[nodiscard]] virtual std::vector<node_id> measured_here() = 0;
    [[nodiscard]] virtual std::optional<std::uint16_t> network_to(node_id n) = 0;
    // Directly, whatever ways messages take. False: there is no room now, or no connection.
    virtual bool post_directly(node_id to, kind k, std::span<const std::byte> head,
                               std::span<const std::byte> body) = 0;
    // On node 0: costs are other ones than before; and all that are other ones than at first.
    virtual void on_costs(std::vector<way_plan::measurement> changed) = 0;

   protected:
    ~hands() = default;
  };
  // every_ns: from the end of one survey to the next one; 0: never.
  remeasuring(mailer& mail, hands& h, believed_costs costs, std::int64_t every_ns,
              std::int64_t now_ns);

  // Short streams, which do not keep the job's messages waiting for long.
  static survey::limits limits() noexcept {
    survey::limits l;
    l.pieces = 4;
    l.streams = 2;
    l.stream_ns = 100'000'000;
    return l;
  }

  // Does what is due. Returns when to call again, unless something comes before.
  std::int64_t on_time(std::int64_t now_ns);
  bool on_message(node_id from, kind k, reader r, std::int64_t now_ns);
  // Somebody has come, whose networks nobody knows; or has left.
  void members_have_changed(std::int64_t now_ns);
  // Nothing is measured any more.
  void stop();

 private:
  bool try_post(node_id to, kind k, std::span<const std::byte> head,
                std::span<const std::byte> body) override {
    return hands_.post_directly(to, k, head, body);
  }
  void order(std::int64_t now_ns);
  void measure(std::uint32_t number, std::int64_t now_ns);
  void go_on(std::int64_t now_ns);
  void on_answer(node_id from, reader r, std::int64_t now_ns);
  void look_whether_all(std::int64_t now_ns);

  mailer& mail_;
  hands& hands_;
  const std::int64_t every_ns_;
  std::optional<survey> survey_;  // the last; there always is one, which answers others
  bool measures_ = false;         // it is not over
  bool stopped_ = false;
  std::uint32_t number_ = 0;  // of the last that was ordered
  std::int64_t next_ns_ = INT64_MAX;

  // Node 0's.
  believed_costs costs_;
  std::int64_t due_ns_;
  bool again_soon_ = false;  // members have changed since those were asked that are awaited
  std::set<node_id> awaited_;
  std::vector<way_plan::measurement> found_;
};

}  // namespace strata::cluster
