// SPDX-License-Identifier: Apache-2.0
// Which sockets are worth a recv(), by one of the mechanisms of options.hpp; and sleeping until one
// is, which is always epoll's.
#pragma once
#include <poll.h>

#include <cstdint>
#include <span>
#include <vector>

#include "net/attendance.hpp"
#include "net/doorbell.hpp"
#include "net/tcp/options.hpp"
#include "os/descriptor.hpp"

namespace strata::net::tcp {

class readiness {
 public:
  struct source {
    int fd;
    std::uint32_t id;
  };

  // Throws strata::error when there are no descriptors left, strata::user_error when select cannot
  // take a descriptor as large as one of these.
  readiness(poll_mechanism mechanism, std::span<const source> sources);

  // Throws as the constructor does. Not while others look.
  void add(const source& s);
  void remove(std::uint32_t id);

  // Appends the ids of sockets that may have something; never blocks.
  void look(std::vector<std::uint32_t>& ready);
  // Sleeps until one has, ring() is called, or the time is over, unless it is not to stay when
  // everybody can see that it sleeps. While another thread looks, too.
  template <class Stays>
  void wait(std::int64_t timeout_ns, Stays&& stays) {
    if (!bell_.may_sleep()) return;
    if (stays()) sleep(timeout_ns);
    bell_.awake();
  }
  // Somebody else looks often: nobody who sleeps is woken by what arrives, until nobody does.
  void attended() noexcept {
    attendants_.begin();
    stand_in_attendants_.begin();
  }
  void unattended() noexcept {
    attendants_.end();
    stand_in_attendants_.end();
  }
  // Any thread. True: a thread had to be woken.
  bool ring() noexcept { return bell_.ring(); }

  // Whoever looked has left something that no socket tells of, but `stays` does. Wakes one of those
  // who sleep already, the stand-in if it does; nobody while another looks often, who is told by
  // `stays` as well when he ends that. True: the one in wait() had to be woken.
  bool ring_for_rest() noexcept;

  // One more thread, instead of the one in wait(): sleeps until a socket has something or
  // ring_stand_in(), unless it is not to stay when everybody can see that it sleeps. True: it is to
  // look, and has begun to attend. False: it may have been rung for all that.
  template <class Stays>
  [[nodiscard]] bool wait_as_stand_in(Stays&& stays) {
    attendants_.begin();
    bool woken = false;
    if (stand_in_bell_.may_sleep()) {
      woken = stays() && sleep_as_stand_in();
      stand_in_bell_.awake();
    }
    if (woken) {
      stand_in_attendants_.begin();
    } else {
      attendants_.end();
    }
    return woken;
  }
  void ring_stand_in() noexcept { stand_in_bell_.ring(); }

 private:
  void sleep(std::int64_t timeout_ns);
  [[nodiscard]] bool sleep_as_stand_in();
  [[nodiscard]] poll_mechanism chosen() const noexcept;
  void look_by_poll(std::vector<std::uint32_t>& ready);
  void look_by_select(std::vector<std::uint32_t>& ready);
  void take_events(std::int64_t timeout_ns, std::vector<std::uint32_t>& ready);

  const poll_mechanism mechanism_;
  std::vector<source> sources_;
  std::vector<pollfd> polled_;  // in the order of sources_
  os::descriptor epoll_;        // all sockets
  doorbell bell_, stand_in_bell_;
  os::descriptor sleeps_, stand_in_sleeps_;  // that and the bell
  attendance attendants_, stand_in_attendants_;
};

}  // namespace strata::net::tcp
