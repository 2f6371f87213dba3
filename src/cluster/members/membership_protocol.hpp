// SPDX-License-Identifier: Apache-2.0
// How nodes come to a running job and leave it. (Requirement P2.)
//
// A comer is connected to everybody before it says anything. It tells node 0 first, which counts
// who is there (quiescence.hpp), and then the others; from then on each of them gives it work. It
// takes none before all know it: what it has must not be lost with one that "never came".
//
//   comer -> member   arrive      member -> comer   known
//
// A leaver says so, and gets no more work; what it has it finishes or hands over. When nothing
// holds it, and the launcher lets nobody else come or go, it says farewell: the others keep back
// what they have for it. Once all of them have, nothing is on its way to it any more. If nothing
// has come meanwhile either it leaves: node 0 inherits its counts, and what the others kept back
// will never be delivered. Otherwise it stays, gets that, and tries again later.
//
//   leaver -> member  leaving
//   leaver -> member  farewell    member -> leaver  kept_back
//   leaver -> member  stays
//   leaver -> member  left        member -> leaver  parted: the last message to it
//
// All of it is called with the inbox.
#pragma once
#include <cstdint>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/membership.hpp"
#include "cluster/words/surroundings.hpp"
#include "cluster/work/quiescence.hpp"

namespace strata::cluster {

class membership_protocol {
 public:
  // Who acts on it.
  class hands {
   public:
    // members().of(n) is another than before.
    virtual void on_standing(node_id n) = 0;
    // What the program has for n is kept back, or goes on.
    virtual void keep_back(node_id n, bool kept) = 0;
    // All know this node, which came late.
    virtual void on_entered() = 0;
    // This node has nothing that others could miss; nor does it get anything.
    [[nodiscard]] virtual bool nothing_holds() = 0;
    // Before this node leaves: the last that it says.
    virtual void last_words() = 0;
    virtual void on_stay() = 0;
    // All know that this node has left.
    virtual void on_parted() = 0;

   protected:
    ~hands() = default;
  };

  membership_protocol(mailer& mail, membership& members, const work_counts& counts,
                      quiescence& quiet, hands& h);

  void come();
  void begin_to_leave();
  void part();
  // `node` was to come and does not, which all that is here hears of; or it has left, or never was
  // there. False: it counts.
  bool is_no_loss(node_id node);
  // Nothing that this node has said is lost with `node`: it has left, and is told no more. False:
  // it has not.
  bool on_lost(node_id node);
  // n has said that it knows this node, which came late, or has known it from the beginning.
  [[nodiscard]] bool is_known_to(node_id n) const;
  [[nodiscard]] bool is_leaving() const noexcept {
    return members_.of(mail_.self()) == standing::leaving;
  }

  bool on_message(node_id from, kind k, reader r);

 private:
  enum class step { none, counted, told, farewell, left };
  // To all others; whoever answers is awaited.
  void tell_others(kind k, std::span<const std::byte> payload = {});
  void on_answer(node_id from, step expected);
  // All have answered.
  void next_step();
  void change(node_id n, standing s);

  mailer& mail_;
  membership& members_;
  const work_counts& counts_;
  quiescence& quiet_;
  hands& hands_;
  step step_ = step::none;
  std::vector<node_id> awaited_;    // whose answer is to come
  std::vector<node_id> farewells_;  // whose stays or left is to come
};

}  // namespace strata::cluster
