// SPDX-License-Identifier: Apache-2.0
// The runtime: workers that run tasks, fork-join and fibers.
//
//   int main(int argc, char** argv) {
//     strata::runtime runtime(argc, argv);
//     long n = runtime.run([] { return fib(40); });
//   }
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "strata/detail/root_task.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"
#include "strata/options.hpp"
#include "strata/stats.hpp"

namespace strata {

namespace detail {
class lone_watch;
class seeing;
}  // namespace detail
namespace cluster {
class engine;
}
namespace messages {
class messenger;
}

namespace detail {
// Tasks for submit(): they own their function.
template <class F>
struct detached_call : task {
  explicit detached_call(F f) : task{&type_of}, function(std::move(f)) {}
  static void body(task& t) {
    const std::unique_ptr<detached_call> self(static_cast<detached_call*>(&t));
    self->function();
  }
  static void abandon(task& t, worker&) { delete static_cast<detached_call*>(&t); }
  static constexpr task_type type_of{&run_on_stack, &body, &abandon, &type_name<F>};
  F function;
};
}  // namespace detail

/// A set of workers, each an OS thread. Any number of runtimes can live in a process at once; they
/// share nothing, and no CPU as long as there are enough (options::bind).
class runtime {
 public:
  /// Starts the workers: settings.workers of them, or as many as this process may use. They sleep
  /// until there is work. Settings are those given here: no flag, file or variable is read but
  /// STRATA_LAUNCH. In a process that `strata run`, `srun --mpi=pmix` or Open MPI's `mpirun`
  /// has started, the first runtime joins the job, which blocks until all nodes have; on every node
  /// but node 0 it then works for the job and ends the process when that is over: what a program
  /// does before it makes its runtime happens on every node, what it does afterwards on node 0.
  ///
  /// A process in which MPI has been initialised is MPI's: there the constructor returns on the
  /// other nodes too when node 0 has destroyed its runtime, and has_served() is true.
  /// The runtime needs nothing of MPI but the launcher, MPI_THREAD_SINGLE is enough. All ranks may
  /// make further runtimes, one after another, together.
  ///
  ///   MPI_Init(&argc, &argv);
  ///   {
  ///     strata::runtime runtime(argc, argv);
  ///     if (!runtime.has_served()) runtime.run([] { ... });  // on node 0, which is rank 0
  ///   }
  ///   MPI_Finalize();
  ///
  /// Throws misuse_error for settings out of range, user_error when a job of srun or mpirun cannot
  /// be joined as things are (another build, PMIx is missing), or that of `strata run` (another
  /// program of the same script has had this node's part in it), node_lost_error when one of its
  /// nodes did not come in time, or, under `strata run`, has ended before all had joined (on node
  /// 0; the other processes end with status 1), error when threads or address space are refused.
  /// Blocks for the start, about 0.1 ms for each worker.
  explicit runtime(const options& settings = {});

  /// For main(): with the settings that its user gives, which are gone from argv then. What the
  /// user can put right ends the process with status 2 and one line on stderr, as in
  /// options::parse_or_exit(); whatever else is thrown as above.
  runtime(int& argc, char** argv);

  /// Waits until all work has ended, on every node, as wait_idle() does, then stops the workers.
  /// Whoever waits then for what has not come goes no further: what is on its stack is not
  /// destroyed, and nobody finds it any more where it waits. What another runtime completes for it
  /// (a completion, a thread that it joins) must not come afterwards. With settings.stats, prints
  /// statistics on stderr, with settings.profile alone work and span. From within the runtime, as
  /// by exit() in one of its tasks where it is a static object, it returns at once: whoever waited
  /// there would wait for itself. Then workers and all that they have stay until the process ends.
  /// So they do where a run() waits for what has not come, as when another thread calls exit().
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Runs f inside the runtime and returns what it returns; blocks the calling OS thread meanwhile.
  /// f may fork, spawn, send tokens and wait. If a worker is asleep, the caller takes its place and
  /// does the work itself (some 50 ns for an empty f); otherwise a worker does it. Any number of
  /// threads may call at once. Called within this runtime, f is simply called. f sees everything
  /// before the call; the caller sees everything f did. Rethrows f's exception. An exception that
  /// leaves a fiber fails everything that is in progress in this runtime: each run() rethrows it
  /// (unless f has thrown something else) when all of it has ended. So does node_lost_error when
  /// the job loses a node. Throws misuse_error where has_served(); f is not called then.
  template <class F>
  auto run(F&& f) -> std::invoke_result_t<F&> {
    if (is_inside()) return std::invoke(f);
    detail::root_call<std::remove_reference_t<F>> root(f);
    if (const std::exception_ptr fiber_failed = enter(root);
        fiber_failed != nullptr && !root.out.threw()) {
      root.out.drop();
      std::rethrow_exception(fiber_failed);
    }
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      root.out.take();
    } else {
      return root.out.take();
    }
  }

  /// Hands f over and returns at once; a worker runs it on a stack of its own, some time. f must
  /// not throw (the program ends if it does). f sees everything before the call. Any thread may
  /// call, workers too. Throws std::bad_alloc, and misuse_error where has_served(); f is destroyed
  /// then.
  template <class F>
  void submit(F&& f) {
    auto call = std::make_unique<detail::detached_call<std::decay_t<F>>>(std::forward<F>(f));
    inject(*call);
    (void)call.release();  // it may be gone by now
  }

  /// Blocks the calling OS thread until no worker, on any node, has anything left to do, now or
  /// when a time has come or a call of strata::blocking() has returned. Suspended stacks that
  /// nobody will continue do not count, nor do those that wait for a descriptor without a timeout.
  /// Throws misuse_error within the runtime, also in a call of strata::blocking() there, and
  /// node_lost_error if the job has lost a node: what that had left to do is not done.
  void wait_idle();

  /// Whether this node has worked for a job that is over by now. run() and submit() throw
  /// misuse_error then.
  [[nodiscard]] bool has_served() const noexcept { return has_served_; }

  /// Number of workers of this node, which stays the same. Any thread, any time; never blocks.
  [[nodiscard]] unsigned workers() const noexcept;

  /// What the workers have done since the start, and which paths messages took. Any thread, any
  /// time; exact while the runtime is idle. Takes some 10 ns for each endpoint that the node has
  /// had at one time, and locks each for as long.
  [[nodiscard]] statistics stats() const;

  /// How many workers there are, why, and on which CPUs; in a job also which node this is, and how
  /// many others it reaches by what. Some lines for people, whose words may change. Any thread, any
  /// time; does not wait for others. Throws std::bad_alloc.
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] bool is_inside() const noexcept;
  [[nodiscard]] std::exception_ptr enter(detail::root_task& root);
  void inject(detail::task& t);

  // For the constructor, of a node other than 0: works until the job is over, and ends the process,
  // or if that goes on returns, or throws error where a node was lost.
  void serve_and_end(bool process_goes_on);
  void end_workers();
  void leave_to_process();

  void print_statistics() const;
  [[nodiscard]] bool has_calls_in_progress() const noexcept;
  [[nodiscard]] std::string describe_waits() const;
  void refuse_after_service() const;

  std::unique_ptr<messages::messenger> messages_;  // outlives whatever may end an endpoint
  std::unique_ptr<detail::lone_watch> watch_;      // null where there may be other nodes
  std::unique_ptr<detail::scheduler> scheduler_;
  std::unique_ptr<cluster::engine> engine_;  // null in a process of its own
  std::unique_ptr<detail::seeing> seeing_;
  bool has_served_ = false;
};

}  // namespace strata
