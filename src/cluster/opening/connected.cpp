// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/connected.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/errno_error.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"
#include "os/own_thread.hpp"
#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

// Of the time that a job has to start: as all nodes are there and listen, whoever cannot be reached
// within it is behind something that lets nothing through. For spare connections all are ready.
constexpr std::int64_t first_part = 5, spare_part = 10;

connected connect_over(part& p, which w, const std::vector<launch::address>& directory,
                       std::int64_t deadline_ns, const connecting& how,
                       const net::tidings& meanwhile) {
  part::ear& own = w == which::first ? p.first : p.spare;
  if (own.addressed != nullptr) {
    how.partly ? own.addressed->connect_where_possible(directory, deadline_ns, meanwhile)
               : own.addressed->connect(directory, deadline_ns, meanwhile);
    connected made(std::move(own.addressed));
    if (how.partly) made.tend(how.me.node, how.me.nodes);
    return made;
  }
  net::tcp::mesh_options mesh;
  mesh.socket_buffer_bytes = how.socket_buffer_bytes;
  mesh.partial = how.partly;
  // Who dies meanwhile connects to nobody, and nobody should wait for it.
  mesh.news = meanwhile.readable;
  mesh.on_news = meanwhile.look;
  connected::troubles why;
  mesh.on_left_out = [&](node_id n, const std::string& words) { why[n] = words; };
  auto sockets = net::tcp::connect_mesh(how.me, own.listeners, directory, deadline_ns, mesh);
  return {std::move(sockets), std::move(why)};
}

// Of several threads that connect: what one of them hears ends the waiting of all, and so does what
// goes wrong with one of them.
class common_tidings {
 public:
  explicit common_tidings(const net::tidings& what)
      : what_(what), failed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!failed_) throw errno_error("cannot create an event descriptor", errno);
    std::vector<int> all{failed_.get()};
    if (what.readable >= 0) all.push_back(what.readable);
    readable_ = net::epoll_on(all);
  }
  [[nodiscard]] net::tidings share() {
    return {readable_.get(), [this] { look(); }};
  }
  // What is being thrown in this thread.
  void fail() {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = std::current_exception();
    const std::uint64_t one = 1;
    while (::write(failed_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void look() {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) throw error("another network has failed");
    if (what_.look) what_.look();
  }

  const net::tidings& what_;
  const os::descriptor failed_;  // an eventfd: readable then
  os::descriptor readable_;
  std::mutex mutex_;            // of what_.look() and:
  std::exception_ptr failure_;  // the first
};

// Returns when there has been no news that end the joining.
void hear_why(const net::tidings& meanwhile, std::int64_t deadline_ns) {
  if (!meanwhile.look || meanwhile.readable < 0) return;
  const os::descriptor news = net::epoll_on({meanwhile.readable});
  for (;;) {
    meanwhile.look();
    const std::int64_t left_ns = deadline_ns - os::now_ns();
    if (left_ns <= 0) return;
    epoll_event event;
    net::wait_for_events(news.get(), &event, 1, left_ns);
  }
}

}  // namespace

void or_hear_why(const connecting& how, const std::function<void()>& f) {
  try {
    f();
  } catch (const user_error&) {
    throw;
  } catch (const node_lost_error&) {
    throw;
  } catch (const error&) {
    hear_why(how.meanwhile,
             std::min(how.began_ns + how.start_limit_ns, os::now_ns() + launch::word_of_loss_ns));
    throw;
  }
}

void connected::tend(node_id self, node_id nodes) {
  if (addressed_ == nullptr) return;
  // It measures nothing. Of a loss the caller decides.
  care_ = std::make_unique<surveyor>(*addressed_, self, nodes, std::vector<node_id>{},
                                     survey::limits{}, surveyor::connections::spare);
}

void connected::leave_alone() {
  if (care_ == nullptr) return;
  (void)care_->end();
  ended_ = care_->lost();
  care_.reset();
}

void connected::drop(node_id n) noexcept {
  if (addressed_ != nullptr) return addressed_->drop(n);
  if (n < sockets_.size()) sockets_[n].reset();
}

connected::transport connected::begin(node_id self, const net::tcp::options& o) && {
  STRATA_CHECK(care_ == nullptr, self);
  transport t;
  if (addressed_ != nullptr) {
    t.addressed = addressed_.get();
    t.over = std::move(addressed_);
    return t;
  }
  auto made = std::make_unique<net::tcp::tcp_transport>(self, std::move(sockets_), o);
  t.tcp = made.get();
  t.over = std::move(made);
  return t;
}

std::vector<connected> connect(std::vector<part>& parts, which w,
                               const std::vector<std::vector<launch::address>>& directories,
                               const connecting& how) {
  const std::int64_t deadline_ns = how.began_ns + how.start_limit_ns;
  const std::int64_t patience_ns =
      how.patience_ns != 0 ? how.patience_ns
                           : how.start_limit_ns / (w == which::first ? first_part : spare_part);
  const std::int64_t limit_ns =
      how.partly ? std::min(deadline_ns, os::now_ns() + patience_ns) : deadline_ns;
  std::vector<connected> all;
  if (parts.size() == 1) {
    all.push_back(connect_over(parts[0], w, directories[0], limit_ns, how, how.meanwhile));
    return all;
  }
  // At once, as nobody knows over which of them somebody waits longer.
  common_tidings meanwhile(how.meanwhile);
  std::vector<std::optional<connected>> made(parts.size());
  std::vector<std::thread> threads;
  threads.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    try {
      threads.emplace_back([&, i] {
        const os::own_thread here("strata-connect");
        try {
          made[i].emplace(
              connect_over(parts[i], w, directories[i], limit_ns, how, meanwhile.share()));
        } catch (...) {
          meanwhile.fail();
        }
      });
    } catch (...) {
      meanwhile.fail();  // no thread could be made
      break;
    }
  }
  for (std::thread& t : threads) t.join();
  meanwhile.rethrow();
  for (std::optional<connected>& one : made) all.push_back(std::move(*one));
  return all;
}

}  // namespace strata::cluster
