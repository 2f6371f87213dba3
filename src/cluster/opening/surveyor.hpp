// SPDX-License-Identifier: Apache-2.0
// The survey of a node that starts: from the time when its connections stand to that when the job
// begins, two threads have the transport to themselves. One receives, measures, and answers those
// who measure; the other sends what found no room at once.
//
// A node that hears first that all have measured begins, and may have something to say to one that
// has not heard it yet. That one keeps it, and listens no more until it begins too.
#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/ways/survey.hpp"
#include "net/transport.hpp"

namespace strata::cluster {

// What came before the job had begun here.
struct early_message {
  net::header head;
  std::vector<std::byte> payload;
};

struct ended_connection {
  node_id node;
  std::string why;
};

class surveyor final : net::receiver, survey::line {
 public:
  // Measures the networks to `others`, and answers whoever is below `nodes`. `over` outlives it.
  // When a connection fails, that is an error, unless the job can do without.
  enum class connections { needed, spare };
  surveyor(net::transport& over, node_id self, node_id nodes, const std::vector<node_id>& others,
           const survey::limits& l, connections kind_of = connections::needed);
  ~surveyor();
  surveyor(const surveyor&) = delete;
  surveyor& operator=(const surveyor&) = delete;

  // Blocks until the others have been measured, for no longer than the limits allow. Throws
  // strata::error when a connection fails, or what the receiving thread has met, such as
  // std::bad_alloc.
  [[nodiscard]] std::vector<survey::result> results();
  // All nodes have measured: the transport is the caller's again. What is returned is to be handled
  // before all that comes later. Throws as results() does. Once.
  [[nodiscard]] std::vector<early_message> end();
  // After that: whose spare connection has failed.
  [[nodiscard]] const std::vector<ended_connection>& lost() const noexcept { return lost_; }

 private:
  bool try_post(node_id to, kind k, std::span<const std::byte> head,
                std::span<const std::byte> body) override;
  void on_message(const net::header& h, std::span<const std::byte> payload) override;
  void on_lost(node_id peer, const std::string& why) override;
  void fail(std::exception_ptr trouble) noexcept;
  void receive();
  void send();
  void stop() noexcept;

  net::transport& over_;
  const node_id self_, nodes_;
  const connections connections_;
  // The receiving thread's, and the caller's after it.
  survey survey_;
  std::vector<early_message> early_;
  std::vector<ended_connection> lost_;

  // Release, though it brings nothing with it: who sets it wakes both threads then, and they look
  // again. Partner: receive() and send().
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool is_measured_ = false;
  std::vector<survey::result> results_;
  std::exception_ptr trouble_;  // the first; null: none

  std::thread receiver_, sender_;
};

}  // namespace strata::cluster
