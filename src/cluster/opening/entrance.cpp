// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/entrance.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/errno_error.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::cluster {

entrance::entrance(const launch::job_description& job, const std::string& build, reach& who,
                   transports by)
    : me_(net::tcp::identity_in(job, build)),
      limit_ns_(job.start_limit_ns),
      who_(who),
      by_(std::move(by)),
      cancelled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!cancelled_) throw errno_error("cannot create an event descriptor", errno);
  by_.mesh.cancelled = cancelled_.get();
}

net::addressed_transport* entrance::addressed_to(net::node_id node) const {
  const std::size_t network =
      who_.by_networks() ? who_.network(me_.node, node).value_or(by_.addressed.size()) : 0;
  return network < by_.addressed.size() ? by_.addressed[network] : nullptr;
}

entrance::way entrance::expect(net::node_id node, std::uint16_t host,
                               const launch::address& where) {
  who_.set(node, host, where);
  if (who_.shares_memory(me_.node, node)) return way::memory;
  // Over a network both find each other, or neither does.
  if (who_.by_networks() && !who_.network(me_.node, node)) return way::others;
  if (addressed_to(node) != nullptr) return way::address;
  const std::lock_guard lock(mutex_);
  if (!closed_) expected_ = node;
  return way::connection;
}

net::transport* entrance::admit_at_once(net::node_id node, way by) {
  if (by == way::memory) {
    by_.shm->admit(node);
    return by_.shm;
  }
  if (by != way::address) return nullptr;
  net::addressed_transport* const all = addressed_to(node);
  all->admit(node, who_.towards(me_.node, node));
  return all;
}

void entrance::forget(net::node_id node) {
  const std::lock_guard lock(mutex_);
  if (expected_ == node) stop_waiting();
}

void entrance::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  stop_waiting();
}

void entrance::stop_waiting() noexcept {
  expected_.reset();
  const std::uint64_t one = 1;
  while (::write(cancelled_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

os::descriptor entrance::await(net::node_id node) {
  {
    const std::lock_guard lock(mutex_);
    if (expected_ != node) throw error("node " + std::to_string(node) + " is not expected");
    std::uint64_t before = 0;  // of somebody who was forgotten
    (void)!::read(cancelled_.get(), &before, sizeof before);
  }
  std::vector<launch::address> comes(me_.nodes);
  comes[node].port = 1;  // any: who has the higher number connects
  auto sockets = net::tcp::connect_mesh(me_, by_.doors, comes, os::now_ns() + limit_ns_, by_.mesh);
  return std::move(sockets[node]);
}

net::transport& entrance::admit(net::node_id node, os::descriptor connection) {
  by_.tcp->admit(node, std::move(connection));
  return *by_.tcp;
}

}  // namespace strata::cluster
