// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/surveyor.hpp"

#include <algorithm>
#include <utility>

#include "os/clock.hpp"
#include "os/own_thread.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

constexpr std::size_t survey_messages_at_once = 64;

}  // namespace

surveyor::surveyor(net::transport& over, node_id self, node_id nodes,
                   const std::vector<node_id>& others, const survey::limits& l, connections kind_of)
    : over_(over),
      self_(self),
      nodes_(nodes),
      connections_(kind_of),
      survey_(*this, others, os::now_ns(), l) {
  receiver_ = std::thread([this] {
    const os::own_thread here("strata-receive");
    try {
      receive();
    } catch (...) {
      fail(std::current_exception());  // there is no memory, say
    }
  });
  try {
    sender_ = std::thread([this] {
      const os::own_thread here("strata-send");
      send();
    });
  } catch (...) {
    stop();
    throw;
  }
}

surveyor::~surveyor() { stop(); }

void surveyor::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  over_.wake_receiver();
  over_.wake_sender();
  if (receiver_.joinable()) receiver_.join();
  if (sender_.joinable()) sender_.join();
}

std::vector<survey::result> surveyor::results() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_measured_ || trouble_ != nullptr; });
  if (trouble_ != nullptr) std::rethrow_exception(trouble_);
  return results_;
}

std::vector<early_message> surveyor::end() {
  stop();
  if (trouble_ != nullptr) std::rethrow_exception(trouble_);
  return std::move(early_);
}

// ---- the receiving thread ----

void surveyor::receive() {
  bool is_told = false;
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::int64_t next_ns = survey_.go_on(os::now_ns());
    if (survey_.is_done() && !is_told) {
      is_told = true;
      const std::lock_guard lock(mutex_);
      results_ = survey_.results();
      is_measured_ = true;
      changed_.notify_all();
    }
    if (over_.poll(*this, survey_messages_at_once) != 0) {
      // Its sender knows that all have measured: nobody asks for an answer any more.
      if (!early_.empty()) return;
      continue;
    }
    over_.wait_for_messages(next_ns == INT64_MAX
                                ? net::wait_forever_ns
                                : std::max<std::int64_t>(next_ns - os::now_ns(), 0));
  }
}

void surveyor::on_message(const net::header& h, std::span<const std::byte> payload) {
  try {
    if (survey_.on_message(h.source, static_cast<kind>(h.kind), reader(payload), os::now_ns()))
      return;
    if (!survey_.is_done()) throw malformed("it begins before all have measured");
    early_.push_back({h, {payload.begin(), payload.end()}});
  } catch (const malformed& e) {
    over_.drop(h.source);
    on_lost(h.source, std::string("it has sent nonsense: ") + e.what());
  }
}

void surveyor::on_lost(node_id peer, const std::string& why) {
  if (connections_ == connections::spare) {
    lost_.push_back({peer, why});
    return;
  }
  fail(std::make_exception_ptr(error("node " + std::to_string(peer) + " is lost: " + why)));
}

void surveyor::fail(std::exception_ptr trouble) noexcept {
  const std::lock_guard lock(mutex_);
  if (trouble_ == nullptr) trouble_ = std::move(trouble);
  changed_.notify_all();
}

bool surveyor::try_post(node_id to, kind k, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  // To one that is lost it counts as sent: of the loss others tell.
  return over_.try_send(to, header_of(self_, to, k), head, body) != net::send_outcome::would_block;
}

// ---- the sending thread ----

void surveyor::send() {
  while (!stopping_.load(std::memory_order_acquire)) {
    for (unsigned n = 0; n < nodes_; ++n) {
      const auto node = static_cast<node_id>(n);
      if (node != self_ && over_.reaches(node)) (void)over_.flush(node);
    }
    over_.wait_for_room(net::wait_forever_ns);
  }
}

}  // namespace strata::cluster
