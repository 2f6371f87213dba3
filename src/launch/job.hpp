// SPDX-License-Identifier: Apache-2.0
// What a process knows of the job that it is a node of, and its line to whoever holds the job
// together: our launcher, or the site's (src/launch/pmix, by other means than what follows).
//
// Our launcher (tools/strata) starts each node with STRATA_JOB_FD, the number of an inherited
// stream socket. Over it the node learns the job, says where it can be reached, and learns where
// the others are:
//
//   launcher -> node   welcome   (job_description; the memory of same-host nodes as a descriptor)
//   node -> launcher   reachable (its build id and where it can be reached)
//   launcher -> node   directory (everybody's address; sent when all are there)
//   launcher -> node   lost      (node, why: its process ended before the job did)
//   node -> launcher   finished  (the node leaves on purpose)
//   node -> launcher   missed    (node, why: nothing comes from there any more)
//
// If its nodes find their networks themselves, before that, twice:
//
//   node -> launcher   found     (of the first node of each host: cluster/ways/found_networks.hpp)
//   launcher -> node   all_found (what all have found; sent when all have told)
//
// If one listens on several networks, after the directory, before the job begins:
//
//   node -> launcher   closed       (what it could not connect to, twice: share_closed())
//   launcher -> node   all_closed   (what all have said so far; sent when all have)
//   node -> launcher   measured     (what its networks to others cost)
//   launcher -> node   measurements (what all have said; sent when all have)
//
// In an elastic job nodes come and go, one change at a time:
//
//   launcher -> member admit     (a node that comes, its host and where it can be reached)
//   member -> launcher admitted  (it may connect to this member now)
//   comer -> launcher  found     (nothing: it is told all_found of those who began the job)
//   launcher -> comer  directory (when all members have admitted it; it connects to all of them),
//                      all_closed, measurements and ways, where it listens on several networks
//   comer -> launcher  entered   (it is a member)
//   launcher -> member lost      (a comer: it will not come)
//   node 0 -> launcher ways      (messages take others now: what a comer has to know of them)
//
//   launcher -> member leave     (hand over what you have, and go)
//   member -> launcher refuses   (some reach each other by this one only: it stays)
//   member -> launcher drained   (nothing holds me here: may I go?)
//   launcher -> member go        (nobody comes or goes meanwhile)
//   member -> launcher finished, or stays (something has come for me: I shall ask again)
//
// The end of the line means that the launcher is gone: the node ends at once.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/transport_choice.hpp"
#include "launch/address.hpp"
#include "launch/found_links.hpp"

namespace strata::launch {

// By which ways messages go (cluster/ways/way_plan.hpp) the launcher does not understand; it keeps
// them.
inline constexpr std::size_t plan_bytes_max = std::size_t{64} << 10;

// Holds the number of the node's end of the line; unset by control_line::open().
inline constexpr const char* job_fd_variable = "STRATA_JOB_FD";

using strata::transport_choice;

struct job_description {
  std::uint64_t job = 0;  // random; for messages and log lines
  job_key key{};          // secret, fresh for the job
  node_id node = 0;
  node_id nodes = 1;                   // that there are, or have been
  node_id founders = 1;                // that it began with: the first so many
  node_id capacity = 1;                // node numbers that the job may ever give out
  bool elastic = false;                // nodes may come and go; else capacity == nodes
  bool late = false;                   // the job runs already, and this node comes to it
  std::vector<node_id> left;           // nodes that have gone, when this one comes late
  std::vector<std::uint16_t> host_of;  // node -> number of its host
  std::vector<int> cpus;               // for this node's workers; empty: all that are allowed
  unsigned workers = 0;                // 0: as many as cpus
  transport_choice transport = transport_choice::automatic;
  std::string bind_address = "127.0.0.1";  // where this node listens
  int shared_memory = -1;  // memfd that the nodes of this host share, empty at first; -1: none
  std::int64_t start_limit_ns = 0;  // everybody must have joined by then
};

// So often all tell of closed links; more than so many in all are refused.
inline constexpr unsigned closed_rounds = 2;
inline constexpr std::size_t closed_max = 65'536;

// What nodes have found of their networks the launcher does not understand; it keeps it for those
// who come.
inline constexpr unsigned found_rounds = 2;
inline constexpr std::size_t found_bytes_max = std::size_t{32} << 10;

// Our launcher hears that a process has ended as soon as any other node does, and tells all which
// was first. So long a node waits for its word before it believes what it sees itself.
inline constexpr std::int64_t word_of_loss_ns = 1'000'000'000;

// What the launcher has to tell while the job runs. None of these may throw.
struct job_news {
  std::function<void(node_id, const std::string& why)> lost;
  // In an elastic job:
  std::function<void(node_id, std::uint16_t host, const address&)> admit = {};
  std::function<void()> leave = {};
  std::function<void()> go = {};
};

// What a node of an elastic job answers.
enum class word_to_launcher : std::uint8_t { admitted, entered, drained, stays, refuses };

// A node's end of the line. One thread calls share_found(), exchange(), share_closed() and
// share_measurements();
// after that one thread calls wait().
class control_line {
 public:
  // The line to our launcher; null when this process was not started by it. Reads the welcome;
  // blocks until it is there. Throws strata::error when the line is broken or the launcher speaks
  // another version.
  static std::unique_ptr<control_line> open();
  virtual ~control_line() = default;
  control_line(const control_line&) = delete;
  control_line& operator=(const control_line&) = delete;

  [[nodiscard]] virtual const job_description& job() const noexcept = 0;

  // Where the nodes find their networks themselves, found_rounds times before exchange(): tells
  // what this node has found, at most found_bytes_max, and returns what all who began the job have
  // (index: node). Blocks until the last has told; a node that comes late has nothing to tell, and
  // learns it at once. Throws as exchange().
  virtual std::vector<std::string> share_found(const std::string& mine) = 0;

  // Tells where this node listens and returns where all do (index: node). Blocks until the last has
  // come. When a node does not come, or is of another build, our launcher says so and ends all
  // nodes; this call then throws strata::error at most (the line has ended), node_lost_error when a
  // node is lost.
  virtual std::vector<address> exchange(const address& mine, const std::string& build_id) = 0;

  // Where nodes listen on several networks, closed_rounds times after exchange(): tells which
  // connections this node has found closed since the last time, and returns what all have said so
  // far, in order, each once. All are told the same, so whatever one of two ends has found holds
  // for both. Blocks until the last has told; a node that comes late has nothing to tell, and
  // learns all at once. Throws as exchange().
  virtual std::vector<closed_link> share_closed(const std::vector<closed_link>& mine) = 0;
  // The same, once, after that: tells what this node has
  // measured, and returns what all who began the job have (index: node). Blocks until the last has;
  // a node that comes late has nothing to tell, and learns it at once. Throws as exchange().
  virtual std::vector<std::vector<measured_link>> share_measurements(
      const std::vector<measured_link>& mine) = 0;

  // While this node connects to the others: readable when look() has something to
  // do; -1: never.
  [[nodiscard]] virtual int news_fd() const noexcept { return -1; }
  // Takes in what has come, without waiting, for the calls below to find; the thread of exchange().
  // Throws node_lost_error when a node that has part in the job has ended, strata::error when the
  // launcher is gone.
  virtual void look() {}

  // Of a node that comes late, after that: what node 0 told last; empty: nothing yet.
  virtual std::string learn_plan() { return {}; }
  // On node 0: what those who come later are told, at most plan_bytes_max. Any thread.
  virtual void tell_plan(const std::string&) noexcept {}

  // Blocks. Calls news.lost for each node whose process has ended too early; returns when the line
  // ends (true: the launcher is gone) or close() was called (false).
  virtual bool wait(const job_news& news) = 0;
  // `about`: the node that was admitted. Any thread.
  virtual void say(word_to_launcher, node_id about) noexcept = 0;
  // This node has lost that one, whose process may live: it is silent, say. Any thread.
  virtual void tell_loss(node_id, const std::string& why) noexcept = 0;
  // Says that this node leaves on purpose; ends wait(). Any thread.
  virtual void close() noexcept = 0;
  // Whether whoever holds the job together tells the user which node is lost.
  [[nodiscard]] virtual bool tells_of_losses() const noexcept { return false; }
  // Whether the process has other things to do when its node has no more part in the job.
  [[nodiscard]] virtual bool process_goes_on() const noexcept { return false; }

 protected:
  control_line() = default;
};

}  // namespace strata::launch
