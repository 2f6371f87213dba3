// SPDX-License-Identifier: Apache-2.0
// What a runtime knows about itself: where its workers' time went, what they did, which paths
// messages took, and, on request, work and span.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata {

/// Where a nanosecond of a worker can go. The names are SilkRoad's accounting
/// (docs/architecture.md#sources), with idle, poll and dispatch added. Four of them are charged:
/// work, steal, steal_wait and idle. Nothing is charged to the other six: what messages and
/// what a thread from outside take of a worker is in the one of the four that it was in.
enum class bucket : std::uint8_t {
  work,        ///< tasks run, including the dispatch of local tasks (a few ns each, not separated)
  steal,       ///< searches that ended with work
  steal_wait,  ///< searches that ended with nothing
  transfer,    ///< moving data between nodes: not charged yet
  transfer_wait,  ///< waiting for such data: not charged yet
  lock,           ///< operating distributed locks: not charged yet
  lock_wait,      ///< waiting for them: not charged yet
  poll,           ///< looking at the network: not charged yet
  dispatch,       ///< entering and leaving, by a thread from outside: not charged yet
  idle,           ///< asleep
};
inline constexpr std::size_t bucket_count = 10;

/// "work", "steal", ...
const char* to_string(bucket b) noexcept;

/// One worker, from the start of its runtime until the question.
struct worker_statistics {
  /// Nanoseconds in each bucket, indexed by `bucket`; their sum is the time since the start.
  std::array<std::int64_t, bucket_count> ns{};
  std::uint64_t forks = 0;   ///< forks counted: all of them with options::profile, else only those
                             ///< that took the slow way
  std::uint64_t spawns = 0;  ///< task_scope::spawn
  std::uint64_t tokens = 0;  ///< TOKEN and INVOKE
  std::uint64_t activations = 0;   ///< threaded functions begun
  std::uint64_t fibers = 0;        ///< fibers run, initialization fibers not counted
  std::uint64_t terminations = 0;  ///< frames ended
  std::uint64_t dispatched = 0;    ///< tasks that began on a stack of their own
  std::uint64_t steals = 0;        ///< tasks taken from another worker
  std::uint64_t steals_lost = 0;   ///< attempts that another thief or the owner won
  std::uint64_t steals_empty = 0;  ///< attempts that found nothing to take
  std::uint64_t forced = 0;        ///< times that part of a deque was shared on behalf of an
                                   ///< owner that did not answer
  std::uint64_t suspensions = 0;   ///< times a stack waited
  std::uint64_t resumptions = 0;   ///< times a stack was continued
  std::uint64_t parks = 0;         ///< times the worker went to sleep
  std::uint64_t preemptions = 0;   ///< times a preemptible thread was interrupted
  std::uint64_t waived = 0;        ///< ready tasks given away (policies rotator and locked)
  std::uint64_t hops = 0;          ///< ready tasks taken from the queue of another worker
  std::uint64_t queue_locks = 0;   ///< locks taken to give or take ready tasks
  std::uint64_t rescues = 0;  ///< ready tasks taken from a worker that stood still, as in a system
                              ///< call (policies rotator and locked); in none of these counts
  /// Atomic read-modify-writes by which tasks go from worker to worker: to give or take them, or to
  /// try. A lock is two, an attempt to steal that finds something one. Not in it: those of an owner
  /// in its own deque, those for falling asleep and waking, what comes from outside the workers,
  /// and what threads do to wait for each other (a mutex). 0 under the policy rotator, but for
  /// forks, tokens and pinned threads.
  std::uint64_t read_modify_writes = 0;
  std::uint64_t shares = 0;  ///< times the owner shared part of its deque on request
};

/// Which paths the program's messages (strata/message.hpp) have taken, as one node counts them: all
/// that its endpoints have sent to each other, what they have sent to other nodes, and what has
/// come from there. docs/messages.md says when which path is taken. A message is counted when it is
/// matched with a receive, unless another time is named. One of no bytes of which only the
/// envelope travels (sent synchronously to another node, or to a receiver without room) is counted
/// nowhere.
struct message_statistics {
  // ---- within this process ----
  std::uint64_t handed_over = 0;   ///< no byte was copied: the receiver has the sender's vector
  std::uint64_t copied_once = 0;   ///< out of the sender's memory into the receiver's
  std::uint64_t copied_twice = 0;  ///< kept for a receive in between: its sender went on
  // ---- to other nodes ----
  std::uint64_t sent_whole = 0;  ///< went with its envelope through a transport; counted as it went
  std::uint64_t helped = 0;  ///< of those that others have read here, this node wrote a part there
  // ---- from other nodes, whose bytes stayed with their sender until they were matched ----
  std::uint64_t read = 0;    ///< copied once, out of the sender's memory within a host; at its end
  std::uint64_t moved = 0;   ///< by one transfer of the network's, from buffer to buffer
  std::uint64_t pulled = 0;  ///< through a transport, in pieces
  // ---- all of them ----
  /// Copied by this node into the program's memory (or that of another process of the host, where
  /// it helped), or kept for a receive. What transports copy into rings and sockets is not in it.
  std::uint64_t bytes_copied = 0;
};

/// What one transport has carried between this node and others: the program's messages, and all
/// else that nodes say to each other. Headers are bytes too.
struct transport_statistics {
  std::string name;  ///< "shm", "tcp", "udp", "ucx"
  std::uint64_t messages_out = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t messages_in = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t writes = 0;  ///< system calls, or entries into rings, that carried them out
  std::uint64_t wakes = 0;   ///< of threads that slept in it
};

/// A whole runtime.
struct statistics {
  std::int64_t elapsed_ns = 0;  ///< since the runtime started
  std::vector<worker_statistics> workers;
  /// Frames, tokens and spawned tasks alive now; exact while the runtime is idle.
  std::int64_t live_frames = 0;
  /// Stacks of the usual size ever in use at the same time.
  std::size_t stacks_max = 0;
  /// With options::stats: bytes that the deepest stack of the usual size needed, to a page, and the
  /// memory that all stacks of that size hold now. Asking costs a system call for each; 0
  /// otherwise.
  std::size_t stack_bytes_deepest = 0;
  std::size_t stack_bytes_resident = 0;
  /// With options::profile, of the last runtime::run(): T1, the ns that all strands took together,
  /// and T_inf, the ns along the longest chain of dependences; 0 otherwise. Both
  /// include what the measurement itself costs at each fork (docs/costs.md).
  double work_ns = 0;
  double span_ns = 0;

  message_statistics messages;
  /// One for each that the job uses, the fastest first; a network of several has one of its own.
  /// Empty in a job of one node, and on a node that has served.
  std::vector<transport_statistics> transports;
  /// What this node has passed on between nodes that share no network: messages of any kind. Each
  /// is in the counts of the transports by which it came and went, too.
  std::uint64_t forwarded = 0;

  /// Sum over the workers.
  [[nodiscard]] worker_statistics total() const;
  /// A table for people, several lines.
  [[nodiscard]] std::string to_text() const;
  /// Its line of work and span; empty where they are 0.
  [[nodiscard]] std::string profile_text() const;
};

}  // namespace strata
