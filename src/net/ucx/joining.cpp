// SPDX-License-Identifier: Apache-2.0
// How a node joins the others over UCX, and leaves them.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "net/ucx/ucx_state.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"
#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::net::ucx {

namespace {

// How long leaving waits for what UCX has not sent.
constexpr std::int64_t leave_ns_max = 20'000'000;
// And then for UCX to let go of its connections, which it does by itself.
constexpr std::int64_t close_ns_max = 1'000'000'000;
constexpr std::size_t missing_named_max = 8;
// How often it is taken in what has arrived before anything else is done.
constexpr unsigned rounds_max = 16;

}  // namespace

void ucx_transport::state::open(peer& p, const std::string& address) {
  if (address.empty()) throw error("node " + std::to_string(p.id) + " has no UCX address");
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                   UCP_EP_PARAM_FIELD_ERR_HANDLER;
  how.address = reinterpret_cast<const ucp_address_t*>(address.data());
  how.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  how.err_handler.cb = [](void* arg, ucp_ep_h, ucs_status_t status) {
    peer& broken = *static_cast<peer*>(arg);
    broken.is_broken = true;
    broken.of.lose_because_of(broken, status);
  };
  how.err_handler.arg = &p;
  const ucs_status_t status = ucp.ucp_ep_create(w.handle(), &how, &p.endpoint);
  if (status != UCS_OK) {
    p.endpoint = nullptr;
    throw error("UCX cannot reach node " + std::to_string(p.id) + ": " +
                ucp.ucs_status_string(status) + " (UCX_TLS, UCX_NET_DEVICES?)");
  }
}

// With the lock. UCX delivers nothing meanwhile: that is done by calls that need it too.
void ucx_transport::state::admit(node_id n, const launch::address& where) {
  auto made = std::make_unique<peer>(*this, n);
  open(*made, where.worker);
  peer& p = peers.add(n, std::move(made));
  (void)send(p, is_hello, {}, {}, {});
  if (p.pending == 0) unsettle(p);
}

template <class F>
std::vector<ucx_transport::state::peer*> ucx_transport::state::greet(
    std::unique_lock<turn_lock>& held, std::int64_t deadline_ns, const tidings& meanwhile,
    wanted who, F is_over) {
  os::descriptor with_news;
  if (meanwhile.readable >= 0) with_news = epoll_on({receiver_sleeps.get(), meanwhile.readable});
  const int sleeps_on = with_news ? with_news.get() : receiver_sleeps.get();
  for (;;) {
    if (meanwhile.look) {
      held.unlock();
      meanwhile.look();
      held.lock();
    }
    // Strangers may send faster than this is done: what is left keeps may_sleep() from sleeping.
    for (unsigned round = 0; round != rounds_max && w.progress(); ++round) {
    }
    std::vector<peer*> absent;
    for (const auto& p : peers.all()) {
      // Of who has come and is lost while others are waited for, poll() tells. What is pending is
      // this node's own hello: nothing else goes out before it has joined.
      if (p->greeted && (who == wanted::all || p->pending == 0)) continue;
      absent.push_back(&*p);
    }
    const std::int64_t left_ns = deadline_ns - os::now_ns();
    if (is_over(absent) || left_ns <= 0) return absent;
    if (!may_sleep()) continue;
    held.unlock();
    epoll_event event;
    wait_for_events(sleeps_on, &event, 1, left_ns);
    held.lock();
  }
}

void ucx_transport::state::connect(const std::vector<launch::address>& directory,
                                   std::int64_t deadline_ns, const tidings& meanwhile) {
  STRATA_CHECK(directory.size() <= peers.numbers(), directory.size(), peers.numbers());
  std::unique_lock held(lock);
  for (std::size_t n = 0; n < directory.size(); ++n) {
    if (n != s.self && is_somebody(directory[n])) admit(static_cast<node_id>(n), directory[n]);
  }
  const auto is_lost = [](const peer* p) { return p->lost.load(std::memory_order_relaxed); };
  const std::vector<peer*> absent =
      greet(held, deadline_ns, meanwhile, wanted::all, [&](const std::vector<peer*>& some) {
        return some.empty() || std::any_of(some.begin(), some.end(), is_lost);
      });
  std::string missing;
  for (std::size_t i = 0; i < absent.size(); ++i) {
    const peer& p = *absent[i];
    if (is_lost(&p))
      throw error("cannot join node " + std::to_string(p.id) + " over UCX: " + p.why);
    if (i < missing_named_max) missing += (i == 0 ? "node " : ", node ") + std::to_string(p.id);
  }
  if (absent.empty()) return;
  if (absent.size() > missing_named_max)
    missing += " and " + std::to_string(absent.size() - missing_named_max) + " more";
  throw error("node " + std::to_string(s.self) + " waited in vain for " + missing +
              ": not heard of over UCX within the time limit (UCX_TLS, UCX_NET_DEVICES?)");
}

void ucx_transport::state::connect_where_possible(const std::vector<launch::address>& directory,
                                                  std::int64_t deadline_ns,
                                                  const tidings& meanwhile) {
  STRATA_CHECK(directory.size() <= peers.numbers(), directory.size(), peers.numbers());
  std::unique_lock held(lock);
  for (std::size_t n = 0; n < directory.size(); ++n) {
    if (n == s.self || !is_somebody(directory[n])) continue;
    try {
      admit(static_cast<node_id>(n), directory[n]);
    } catch (const error&) {
      // UCX knows no way there, and it is no peer.
    }
  }
  const std::vector<peer*> absent =
      greet(held, deadline_ns, meanwhile, wanted::who_hears, [](const std::vector<peer*>& some) {
        return std::all_of(some.begin(), some.end(),
                           [](const peer* p) { return p->lost.load(std::memory_order_relaxed); });
      });
  for (peer* const p : absent) {
    p->dropped.store(true, std::memory_order_relaxed);
    lose(*p, "was not heard of");
  }
}

void ucx_transport::state::leave() noexcept {
  end_registrations();
  const std::lock_guard held(lock);
  give_back(draining);
  const std::int64_t end_ns = os::now_ns() + leave_ns_max;
  for (const auto& p : peers.all()) {
    if (p->endpoint == nullptr || p->lost.load(std::memory_order_relaxed)) continue;
    (void)send(*p, is_bye, {}, {}, {});
  }
  while (pending != 0 && os::now_ns() < end_ns) (void)w.progress();
  std::vector<ucs_status_ptr_t> closing;
  for (const auto& p : peers.all()) {
    if (p->endpoint == nullptr) continue;
    if (!p->lost.exchange(true, std::memory_order_relaxed)) lost_blocks += p->blocks;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp.ucp_ep_close_nbx(p->endpoint, &how);
    p->endpoint = nullptr;
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  // Memory of the program's must not be in use when nobody is told any more.
  while (lost_blocks != 0 && os::now_ns() < end_ns + close_ns_max) (void)w.progress();
  for (const ucs_status_ptr_t request : closing) {
    while (ucp.ucp_request_check_status(request) == UCS_INPROGRESS &&
           os::now_ns() < end_ns + close_ns_max) {
      (void)w.progress();
    }
    ucp.ucp_request_free(request);
  }
  unmap_ended();
  give_back(filling);
}

}  // namespace strata::net::ucx
