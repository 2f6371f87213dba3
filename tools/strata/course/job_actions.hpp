// SPDX-License-Identifier: Apache-2.0
// What the course of a job (session, changes) can do. The launcher does it; tests write it down.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "launch/job.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

// Of somebody who asked for a change of a running job, and is told what became of it.
using ticket = std::uint64_t;

// Where a node came to be.
struct late_place {
  std::uint16_t host = 0;
  std::string on_host{};  // " on NAME", or nothing
};

class job_actions {
 public:
  virtual void send(node_id node, const std::string& frame_bytes) = 0;
  virtual void signal_all(int number) = 0;  // to every node that still runs
  virtual void say(const std::string& line) = 0;

  // In an elastic job. Starts a node as `who` wished; `gone` are the numbers before it that are no
  // members'. Throws error when it cannot.
  virtual late_place spawn(node_id node, ticket who, const std::vector<node_id>& gone) = 0;
  // Kills this one.
  virtual void end(node_id node) = 0;
  // To who asked: `denied` is the last that it hears.
  virtual void joined(ticket who, node_id node) = 0;
  virtual void left(ticket who, node_id node) = 0;
  virtual void denied(ticket who, const std::string& why) = 0;

 protected:
  ~job_actions() = default;
};

}  // namespace strata::launcher
