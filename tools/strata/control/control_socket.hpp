// SPDX-License-Identifier: Apache-2.0
// The launcher's ear for `strata jobs`, `join` and `leave`: a socket in the user's job_folder.
// Nobody but the same user and root is heard, nothing that arrives is believed, and whoever says
// nothing, or nonsense, is dropped without a word. The job never waits for any of them.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "os/descriptor.hpp"
#include "tools/strata/control/control_messages.hpp"
#include "tools/strata/control/job_folder.hpp"
#include "tools/strata/course/job_actions.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/frame_channel.hpp"

namespace strata::launcher {

class control_socket {
 public:
  // None of these may destroy the control_socket. What they throw ends the line of who asked.
  struct listener {
    std::function<job_status()> status;
    std::function<void(ticket, const join_request&)> join;
    std::function<void(ticket, node_id)> leave;
  };

  control_socket(event_loop& loop, job_folder folder, std::string job, listener who);
  ~control_socket();
  control_socket(const control_socket&) = delete;
  control_socket& operator=(const control_socket&) = delete;

  // To who asked, if it still listens.
  void joined(ticket who, node_id node);
  void left(ticket who, node_id node);
  void denied(ticket who, const std::string& why);

  void on_time(std::int64_t now_ns);
  void postpone(std::int64_t ns);
  [[nodiscard]] std::int64_t deadline_ns() const noexcept;

 private:
  struct connection {
    ticket who;
    std::unique_ptr<frame_channel> line{};
    bool asked = false;
    unsigned answers = 1;       // that it waits for
    std::int64_t limit_ns = 0;  // until when it should have asked, or gone after the last answer
    bool over = false;          // to be forgotten, but not within its own callback
  };

  void watch();
  void accept_some();
  void accept_one(os::descriptor socket);
  void on_request(connection& c, const frame& f);
  void answer(ticket who, const std::string& bytes, bool last);

  event_loop& loop_;
  job_folder folder_;
  std::string job_;
  listener who_;
  os::descriptor socket_;
  std::list<connection> connections_;
  ticket next_ = 1;
  std::int64_t deaf_until_ns_ = 0;  // no descriptors are left for more connections
};

}  // namespace strata::launcher
