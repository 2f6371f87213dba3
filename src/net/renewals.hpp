// SPDX-License-Identifier: Apache-2.0
// Connections between two nodes that are made again when they have ended, by a transport whose own
// sockets are all that takes: UDP. (TCP's come from tcp/reconnector.hpp.)
#pragma once
#include <memory>

#include "net/wire.hpp"

namespace strata::net {

// A connection in place of one that has ended or was dropped: both nodes have agreed on it, and
// nothing has been said by it. Who destroys it without begin() does without it; the other end hears
// of that, if the network carries it there.
class renewal {
 public:
  virtual ~renewal() = default;
  renewal(const renewal&) = delete;
  renewal& operator=(const renewal&) = delete;

  // It takes the place of the one before. Once, by who may poll. False: not now, and it is given
  // up. Throws strata::error.
  [[nodiscard]] virtual bool begin() = 0;

 protected:
  renewal() = default;
};

class renewals {
 public:
  // Within poll().
  class hands {
   public:
    // Whichever of the two has asked.
    virtual void on_met(node_id n, std::unique_ptr<renewal> made) = 0;
    // ask() was in vain.
    virtual void on_not_met(node_id n) = 0;

   protected:
    ~hands() = default;
  };
  // Who hears of them; null: nobody, and nobody who asks is answered. Not within poll().
  virtual void tell(hands* h) = 0;
  // Asks n, which is known, for one. Of two nodes the one with the higher number asks. Its hands
  // are told what has become of that, unless it asks again before: then only of the last. By who
  // may poll.
  virtual void ask(node_id n) = 0;

 protected:
  ~renewals() = default;
};

}  // namespace strata::net
