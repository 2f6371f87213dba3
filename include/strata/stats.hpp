// SPDX-License-Identifier: Apache-2.0
// What a runtime knows about itself: where its workers' time went, what they did, and, on request,
// work and span.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace strata {

/// Where a nanosecond of a worker can go. The names are SilkRoad's accounting, with idle, poll and
/// dispatch added. On one node the transfer, lock and poll buckets stay at zero.
enum class bucket : std::uint8_t {
  work,        ///< tasks run, including the dispatch of local tasks (a few ns each, not separated)
  steal,       ///< searches that ended with work
  steal_wait,  ///< searches that ended with nothing
  transfer,    ///< moving data between nodes
  transfer_wait,  ///< waiting for such data
  lock,           ///< operating distributed locks
  lock_wait,      ///< waiting for them
  poll,           ///< looking at the network
  dispatch,       ///< entering and leaving: a thread from outside takes or returns a worker's place
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
  std::uint64_t forced = 0;        ///< tasks shared on behalf of an owner that did not answer
  std::uint64_t suspensions = 0;   ///< times a stack waited
  std::uint64_t resumptions = 0;   ///< times a stack was continued
  std::uint64_t parks = 0;         ///< times the worker went to sleep
  std::uint64_t preemptions = 0;   ///< times a preemptible thread was interrupted
  std::uint64_t waived = 0;        ///< ready tasks given away (policies rotator and locked)
  std::uint64_t hops = 0;          ///< ready tasks taken from the queue of another worker
  std::uint64_t queue_locks = 0;   ///< locks taken to give or take ready tasks
  std::uint64_t shares = 0;        ///< times the owner shared part of its deque on request
};

/// A whole runtime.
struct statistics {
  std::int64_t elapsed_ns = 0;  ///< since the runtime started
  std::vector<worker_statistics> workers;
  /// Frames, tokens and spawned tasks alive now; exact while the runtime is idle.
  std::int64_t live_frames = 0;
  /// Stacks ever in use at the same time.
  std::size_t stacks_max = 0;
  /// With options::stats: bytes that the deepest stack of the usual size needed, to a page, and the
  /// memory that all stacks of that size hold now. Asking costs a system call for each; 0
  /// otherwise.
  std::size_t stack_bytes_deepest = 0;
  std::size_t stack_bytes_resident = 0;
  /// With options::profile, of the last runtime::run(): T1, the ns that all strands took together,
  /// and T_inf, the ns along the longest chain of dependences; 0 otherwise. The measurement itself
  /// costs some 20 ns per fork, which both include.
  double work_ns = 0;
  double span_ns = 0;

  /// Sum over the workers.
  [[nodiscard]] worker_statistics total() const;
  /// A table for people, several lines.
  [[nodiscard]] std::string to_text() const;
};

}  // namespace strata
