// SPDX-License-Identifier: Apache-2.0
#include "cluster/entrance.hpp"

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
                   std::vector<net::tcp::listener> doors, net::shm::shm_transport* shm,
                   net::tcp::tcp_transport* tcp, net::tcp::mesh_options options)
    : me_(net::tcp::identity_in(job, build)),
      limit_ns_(job.start_limit_ns),
      who_(who),
      doors_(std::move(doors)),
      shm_(shm),
      tcp_(tcp),
      options_(std::move(options)),
      cancelled_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!cancelled_) throw errno_error("cannot create an event descriptor", errno);
  options_.cancelled = cancelled_.get();
}

entrance::entrance(const launch::job_description& job, reach& who, net::shm::shm_transport* shm,
                   net::addressed_transport& all)
    : me_(net::tcp::identity_in(job, {})),
      limit_ns_(job.start_limit_ns),
      who_(who),
      shm_(shm),
      tcp_(nullptr),
      all_(&all) {}

entrance::way entrance::expect(net::node_id node, std::uint16_t host,
                               const launch::address& where) {
  who_.set(node, host, where);
  // Over a network both find each other, or neither does.
  const bool is_found = !who_.by_networks() || who_.towards(me_.node, node).port != 0;
  const bool is_near = who_.shares_memory(me_.node, node);
  if (all_ != nullptr) return is_near ? way::memory : is_found ? way::address : way::others;
  const std::lock_guard lock(mutex_);
  if (!closed_) expected_ = node;
  if (is_near) return way::memory;
  return is_found ? way::connection : way::others;
}

net::transport* entrance::admit_at_once(net::node_id node, way by) {
  if (by == way::memory) {
    shm_->admit(node);
    return shm_;
  }
  if (by != way::address) return nullptr;
  all_->admit(node, who_.towards(me_.node, node));
  return all_;
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
  if (!cancelled_) return;  // nobody connects here
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
  auto sockets = net::tcp::connect_mesh(me_, doors_, comes, os::now_ns() + limit_ns_, options_);
  return std::move(sockets[node]);
}

net::transport& entrance::admit(net::node_id node, os::descriptor connection) {
  tcp_->admit(node, std::move(connection));
  return *tcp_;
}

}  // namespace strata::cluster
