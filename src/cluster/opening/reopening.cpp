// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/reopening.hpp"

#include <exception>
#include <utility>

#include "os/own_thread.hpp"
#include "strata/detail/check.hpp"

namespace strata::cluster {
namespace {

class by_socket final : public net::renewal {
 public:
  by_socket(net::tcp::tcp_transport& over, node_id n, os::descriptor socket)
      : over_(over), node_(n), socket_(std::move(socket)) {}
  [[nodiscard]] bool begin() override { return over_.restart(node_, std::move(socket_)); }

 private:
  net::tcp::tcp_transport& over_;
  const node_id node_;
  os::descriptor socket_;
};

}  // namespace

class reopening::of_line final : public net::renewals::hands {
 public:
  of_line(const line& l, reopening::hands& to) : line_(l), to_(to) {}
  void on_met(node_id n, std::unique_ptr<net::renewal> made) override {
    if (const auto over = line_.networks[n]) to_.on_met(n, *over, std::move(made));
  }
  void on_not_met(node_id n) override {
    if (const auto over = line_.networks[n]) to_.on_not_met(n, *over);
  }

 private:
  const line& line_;
  reopening::hands& to_;
};

reopening::reopening(net::tcp::identity me, doors d, std::size_t socket_buffer_bytes,
                     std::vector<line> lines)
    : lines_(std::move(lines)) {
  if (d.where.empty()) return;
  net::tcp::reconnector::settings s;
  s.socket_buffer_bytes = socket_buffer_bytes;
  reconnector_.emplace(std::move(me), std::move(d.where), std::move(d.networks), s);
}

reopening::~reopening() { stop(); }

std::optional<reopening::network> reopening::network_of(node_id n,
                                                        const net::transport* over) const noexcept {
  for (const line& l : lines_) {
    if (l.over == over) return l.networks[n];
  }
  return std::nullopt;
}

const reopening::line* reopening::find(node_id n, network over) const noexcept {
  for (const line& l : lines_) {
    if (n < l.networks.size() && l.networks[n] == over) return &l;
  }
  return nullptr;
}

net::transport* reopening::line_to(node_id n, network over) const noexcept {
  const line* const l = find(n, over);
  return l != nullptr ? l->over : nullptr;
}

void reopening::begin(hands& h) {
  hands_ = &h;
  for (const line& l : lines_) {
    if (l.renews != nullptr)
      l.renews->tell(listening_.emplace_back(std::make_unique<of_line>(l, h)).get());
  }
  if (!reconnector_) return;
  thread_ = std::thread([this] {
    const os::own_thread here("strata-reopen");
    try {
      reconnector_->run(*this);
    } catch (const std::exception&) {
      // What it needs is used up. Connections that end are not made again over TCP; nothing else
      // ends for that.
    }
  });
}

bool reopening::connect(node_id n, network over, launch::address where) {
  const line* const l = find(n, over);
  if (l->renews != nullptr) {
    l->renews->ask(n);
    return true;
  }
  STRATA_CHECK(reconnector_.has_value(), n, over);
  return reconnector_->connect(n, over, std::move(where));
}

void reopening::on_met(node_id n, network over, os::descriptor socket) {
  const line* const l = find(n, over);
  const auto handling = hands_->take_inbox();
  if (l == nullptr || l->tcp == nullptr) return hands_->on_not_met(n, over);
  hands_->on_met(n, over, std::make_unique<by_socket>(*l->tcp, n, std::move(socket)));
}

void reopening::on_not_met(node_id n, network over) {
  const auto handling = hands_->take_inbox();
  hands_->on_not_met(n, over);
}

void reopening::stop() noexcept {
  for (const line& l : lines_) {
    if (l.renews != nullptr) l.renews->tell(nullptr);
  }
  if (reconnector_) reconnector_->stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace strata::cluster
