// SPDX-License-Identifier: Apache-2.0
// The workers of one runtime: how they find work, sleep, wake each other, and let threads from
// outside in.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "os/futex.hpp"
#include "sched/bound_cpus.hpp"
#include "sched/computation_failure.hpp"
#include "sched/frame_depot.hpp"
#include "sched/held_items.hpp"
#include "sched/home_gate.hpp"
#include "sched/injected.hpp"
#include "sched/neighbourhood_visit.hpp"
#include "sched/place.hpp"
#include "sched/place_futex.hpp"
#include "sched/stack_pools.hpp"
#include "sched/thread_limit.hpp"
#include "sched/ticker.hpp"
#include "sched/timers.hpp"
#include "strata/detail/root_task.hpp"
#include "strata/options.hpp"
#include "strata/stats.hpp"
#include "sync/idle_set.hpp"

namespace strata::messages {
class messenger;
}

namespace strata::detail {

class lone_watch;
class scheduler;
struct waiting_stacks;

class scheduler {
 public:
  // What the runtime attaches to this node for its messages. Null in a runtime of the process until
  // somebody asks there: see messages/current_messenger.hpp.
  strata::messages::messenger* messenger = nullptr;

  // Workers on `cpus`; if that is empty, on those that this process may use. `watch` looks while
  // they sleep, on a node that has no others, and exists longer than they do.
  explicit scheduler(const options& settings, const std::vector<int>& cpus = {},
                     lone_watch* watch = nullptr);
  ~scheduler();
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // ---- threads from outside ----
  // Runs root to its end: on this thread if a worker's place is free, else on another worker.
  // Returns the exception that left a fiber meanwhile, or null.
  [[nodiscard]] std::exception_ptr enter(root_task& root);
  // Hands t to whichever worker comes first.
  void inject(task* t);
  // The same for a stack of ours that somebody of another runtime has completed, who knows nothing
  // of how long we exist.
  void continue_here(stack& s);
  // By whoever makes stacks of ours ready, before: we exist until they have ended, and from then on
  // until none of these is here. One of our workers ends before that anyway: then null, else this,
  // which the caller leaves afterwards. Partner: the destructor. (As an object: foreign_waker.hpp.)
  [[nodiscard]] scheduler* admit_foreign_waker() noexcept {
    if (this_place().owner == this) return nullptr;
    // Relaxed: what publishes the stacks is a release.
    foreign_wakers_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void foreign_waker_leaves() noexcept { foreign_wakers_.fetch_sub(1, std::memory_order_release); }
  // Which of those who wait count as having something to do: in a call of strata::blocking() that
  // is in progress, and for a time to come.
  enum class waits { in_calls_too, for_times, none };
  // Whether the calling OS thread runs something of ours, perhaps beneath another runtime's, or a
  // call of strata::blocking() for it: there is no end before it has returned.
  [[nodiscard]] bool is_kept_by_caller() const noexcept;
  // Blocks until no worker has anything to do. Not by one who keeps us.
  void wait_idle(waits counted = waits::in_calls_too);

  // ---- workers ----
  // Finds a task elsewhere. Null when there is something here, and when *leave is not 0. `slept`:
  // the caller comes from sleep().
  task* find_work(place& p, const std::atomic<std::uint32_t>& leave, bool guest,
                  bool slept = false);
  // p has shared something: wakes a sleeper unless somebody searches, or is about to.
  void work_appeared(place& p) noexcept;
  // p has pushed something while it wanted to be reminded of those who sleep.
  void look_for_sleepers(place& p) noexcept;
  void wake_place(int i) noexcept { idle_.wake(static_cast<unsigned>(i)); }

  // ---- other nodes ----
  class visit : public neighbourhood_visit {
   public:
    explicit visit(scheduler& s) noexcept : neighbourhood_visit(s.around_) {}
  };
  // Before anything runs: this node is `node` of `nodes`.
  void join(neighbourhood& n, remote_nodes& others, std::uint16_t node, std::uint16_t nodes);
  // Who brings what they send has frames of its own, which count as this runtime's; null: not any
  // more.
  void count_frames_of(const worker* network_worker);
  // Nodes have come: so many numbers have been given out.
  void set_nodes(std::uint16_t nodes) noexcept;
  // Frames and suspended stacks, less those frames that others took and we gave back, and those of
  // computations that have failed, which nobody ends. Of use while nothing moves here.
  [[nodiscard]] std::int64_t held();
  // Only the stacks.
  [[nodiscard]] std::int64_t held_stacks();
  // While nothing moves. Nobody is in the neighbourhood afterwards.
  void leave();
  // A task that can travel, taken from whichever worker has shared or can be made to share one.
  // Null: none. Any thread.
  [[nodiscard]] task* take_travelling();
  // The same of what is shared already.
  [[nodiscard]] task* take_shared();
  // The same from w's own deque, by the thread that runs w.
  [[nodiscard]] static task* take_travelling_from(worker& w);
  // The same for a shelf, which not all that travels is for.
  [[nodiscard]] static task* take_shelvable_from(worker& w);
  // Every worker is to share at its next push, for another node.
  void ask_everybody() noexcept;
  // The same, but a push that is just happening may miss it. Cheap.
  void ask_everybody_soon() noexcept;
  // About how many tasks wait.
  [[nodiscard]] std::uint32_t load() const noexcept;
  // Of those that other threads have brought.
  [[nodiscard]] injected_work::waiting_tokens count_injected_tokens() {
    return injected_.count_tokens();
  }
  // No worker looks for anything. Something may be ready, or due later.
  [[nodiscard]] bool all_sleep() const noexcept;
  // Somebody waits until all workers sleep, and only the caller's does not: to search for longer
  // is to let others wait. A hint.
  [[nodiscard]] bool last_is_awaited_asleep() const noexcept;
  // Nobody has anything to do.
  [[nodiscard]] bool is_idle(waits counted = waits::in_calls_too) const noexcept;
  // Stacks of ours that wait for such calls, whose OS threads write to them in the end. Changed on
  // the workers: where all sleep it stays as it is. Seq_cst. Partner: is_idle().
  std::atomic<std::uint32_t> calls_in_progress{0};
  // Those of ours who wait at addresses are being forgotten: see threads/forget_parked.cpp.
  std::atomic<bool> waiters_are_given_up{false};

  // ---- a node that has no others ----
  // A worker that sleeps falls asleep anew. False: none sleeps. Also by a signal's handler.
  bool wake_somebody() noexcept { return idle_.wake_one() >= 0; }
  // Some thread from outside waits for the end of a task.
  [[nodiscard]] bool is_awaited() const noexcept;

  // ---- failure of a computation: an exception that left a fiber ----
  void fail(std::exception_ptr error) noexcept;
  // In a job of several nodes: nothing of the failed computation moves on any of them, so those who
  // wait can be told. With `forget` it ends with that, since no run() here does it, and keeps this
  // node in the job no longer.
  void settle(bool forget);
  // For whom it concerns; null when there is none.
  [[nodiscard]] std::exception_ptr take_failure() { return failure.take(); }
  // Whether some task waits for fibers.
  [[nodiscard]] bool somebody_waits() { return failure.has_listeners(); }
  // Which suspended stacks wait. What runs meanwhile may be missed, or shown as it was. A
  // microsecond for each stack that there is, some for each that waits.
  [[nodiscard]] waiting_stacks who_waits();
  // For people: what the workers do, what is queued, who waits for what.
  [[nodiscard]] std::string describe_waits();

  [[nodiscard]] statistics read_statistics() const;
  [[nodiscard]] unsigned workers() const noexcept { return static_cast<unsigned>(places_.size()); }
  // In ticks: tells it from one that was at the same address before.
  [[nodiscard]] std::uint64_t began_at() const noexcept { return started_; }
  [[nodiscard]] std::uint64_t spin_ticks() const noexcept { return spin_ticks_; }
  [[nodiscard]] const std::string& binding() const noexcept { return binding_; }

  // p has got something to run: wakes a sleeper, who may take it, unless somebody is searching.
  void ready_appeared(place& p) noexcept;
  // ---- policies rotator and locked: between the queues of the workers ----
  // How many ready tasks a worker keeps.
  [[nodiscard]] std::size_t fair_share() const noexcept;
  // By the worker that has too many.
  // False: it is to stay.
  [[nodiscard]] bool try_waive(place& p, task* t) noexcept;
  // By a worker, between two tasks: what is there for it.
  void take_waived(place& p);

  // Continues stacks of ours on worker i, where they ran before, unless others take them first. Any
  // thread.
  void make_ready(unsigned i, const stack_list& stacks) noexcept;

  // The same of many, one at least, by the worker that each ran on, pinned ones included.
  void make_all_ready(std::span<const listed_stacks> by_worker) noexcept;

  // Whether what runs on p is to give way: nothing has begun or gone on there since `steps`, which
  // were then p's and are now, and others wait there. Any thread, and a signal's handler.
  [[nodiscard]] bool has_run_for_long(const place& p, std::uint64_t& steps) const noexcept;
  // By the ticker: interrupts preemptible threads that have run since the last call, where others
  // wait. `seen`: what it remembers of each worker.
  void preempt_long_ones(std::vector<std::uint64_t>& seen) noexcept;

  // Stacks of another size than usual, a power of two. Throws strata::error without address space.
  stack_pool& stacks_of(std::size_t bytes) { return pools_.of(bytes); }
  // For a task that somebody has handed in already, and that needs one of the usual size: also
  // where all those are in use that threads may have. Null: there is neither one nor address space.
  [[nodiscard]] stack* take_stack() noexcept;
  // One that a worker has at hand which sleeps, and is woken by that. Null: there is none.
  [[nodiscard]] stack* stack_of_a_sleeper() noexcept;
  // By a worker that waits for a stack to come back: nobody else runs anything either, and nobody
  // waits for what comes from elsewhere.
  [[nodiscard]] bool nobody_will_return_a_stack() noexcept;
  // Workers that pause because they wait for one. Seq_cst with the idle set's count of sleepers:
  // who is in neither of them runs something. Partner: nobody_will_return_a_stack(). Relaxed as a
  // hint: who has one at hand is asked for it.
  std::atomic<unsigned> out_of_stacks{0};
  std::atomic<bool> told_of_no_stacks{false};  // of no partner: who says it, says it once
  // How often the workers have begun or continued something: while it stays the same nothing has
  // made progress but what runs all the time.
  [[nodiscard]] std::uint64_t steps() const noexcept;
  // None has memory that is to be given back, whenever. A hint.
  [[nodiscard]] bool memory_is_tidy() const noexcept { return pools_.is_tidy() && depot.is_tidy(); }
  // All pools, the usual one first, for people. They exist as long as this.
  [[nodiscard]] std::vector<stack_pool*> all_stacks() { return pools_.all(); }
  [[nodiscard]] const place& place_at(unsigned i) const noexcept { return *places_[i]; }
  [[nodiscard]] const injected_work& brought_from_outside() const noexcept { return injected_; }

  stack_pool stacks;
  thread_limit live_threads{places_, stacks};
  timers deadlines;
  ticker preemption;
  frame_depot depot;
  // Shared: a mailbox may end after its runtime, as may a barrier.
  std::shared_ptr<held_items> in_mailboxes;
  const std::shared_ptr<home_gate<>> gate = std::make_shared<home_gate<>>();
  const options settings;
  const policy rule;
  computation_failure failure;
  // Profiling: work and span of the last root.
  std::atomic<std::uint64_t> work_ticks{0};
  std::atomic<std::uint64_t> span_ticks{0};

 private:
  struct search;
  friend class place;
  [[nodiscard]] std::int64_t count_frames() const noexcept;
  void give_up_waiters();
  void stop();
  [[nodiscard]] std::uint64_t ticks_in_fibers() const noexcept;
  // Blocks the OS thread until nothing is left of the failed computation.
  void clear_failure();
  void clear_untold();  // before a root begins
  [[nodiscard]] int lease();
  [[nodiscard]] unsigned place_near() const noexcept;
  [[nodiscard]] bool somebody_is_about_to_look() const noexcept;
  void thread_main(place& p);
  task* take_injected();
  task* take_travelling_of(place& p);
  [[nodiscard]] bool waived_for(const place& p) const noexcept;
  [[nodiscard]] place& predecessor_of(const place& p) const noexcept {
    return *places_[(p.id + places_.size() - 1) % places_.size()];
  }
  // p waives what exceeds its share.
  void shed(place& p) noexcept;
  // Under another policy than `steal`, to somebody. False: there is no memory to find out to whom.
  [[nodiscard]] bool share_out(place& here, std::span<const listed_stacks> by_worker) noexcept;
  // Of those who can take what p waives.
  [[nodiscard]] bool somebody_idles(const place& p) const noexcept;
  // Others have left something for p, that only p takes, or without force.
  [[nodiscard]] bool is_left_for(const place& p) const noexcept {
    return p.has_batches() || p.has_bound() || (rule != policy::steal && waived_for(p));
  }
  // All sleep, and nothing is left for one that is falling asleep and has yet to see it: then the
  // idle set's tally. It is so for as long as that stays the same.
  [[nodiscard]] std::optional<std::uint64_t> tally_if_nothing_moves() const noexcept;
  [[nodiscard]] bool nothing_moves() const noexcept { return tally_if_nothing_moves().has_value(); }
  // Some task waits to hear of a failure, and can: nobody holds on to what it waits in. As above.
  [[nodiscard]] std::optional<std::uint64_t> tally_if_failure_can_be_told() noexcept;
  task* search_or_sleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest, bool& slept);
  [[gnu::cold]] void fall_asleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest,
                                 visit& neighbours);
  void pass_on(const place& p) noexcept;
  [[gnu::noinline]] void wake_for_ready(const place& p) noexcept;
  // Nobody is about to look for work.
  [[nodiscard]] bool has_to_wake(const place& p) const noexcept;
  void wake_for(place& p) noexcept;
  [[nodiscard]] bool others_have_work(const place& p) noexcept;
  [[nodiscard]] bool work_is_visible(const place& p) noexcept;
  [[nodiscard]] bool holds_something() noexcept;
  void sleep(place& p, const std::atomic<std::uint32_t>& leave, bool guest);
  // ---- what one of those who sleep sees to: caretaker.cpp ----
  // By whoever has made something ready on p that only p takes as long as it moves.
  void want_caretaker(const place& p) noexcept;
  // By p, which has taken some of that and is going to run one: where others wait behind it.
  void left_behind_the_first(const place& p) noexcept;
  // By who sleeps in p, once it has said so. `is_tidy`: all was before that. `cares`: it is
  // the caretaker. Returns after how many ns to come again; os::futex_forever_ns: there is nothing
  // to see to, or another does.
  [[nodiscard]] std::int64_t take_care(const place& p, bool is_tidy, bool& cares) noexcept;
  // Gives memory back that nobody uses. Returns the same.
  std::int64_t tidy() noexcept;
  // By the caretaker when it is awake.
  void give_up_care(const place& p) noexcept;
  [[nodiscard]] std::int64_t look_who_stands_still(const place& p) noexcept;
  [[nodiscard]] bool somebody_may_stand_still() const noexcept;
  [[nodiscard]] bool something_waits_at(const place& p) const noexcept;
  [[nodiscard]] bool something_waits_but_at(const place* here) const noexcept;
  [[nodiscard]] static std::uint64_t steps_of(const place& p) noexcept;
  friend place_futex;
  void rouse_stand_in() noexcept;
  void end_standing_in(unsigned i) noexcept;
  bool stand_in(const place_futex::looker& me, os::futex_word& state, std::uint32_t seen) noexcept;
  void run_as_guest(place& p, root_task& root);
  void tell_idle_waiters() noexcept;
  void tell_neighbours_of_sleep() noexcept;

  visited_neighbourhood around_;
  std::vector<std::unique_ptr<place>> places_;
  idle_set<std::atomic, place_futex> idle_;
  std::string binding_;
  bool oversubscribed_ = false;
  bool bound_ = false;
  bound_cpus bound_to_;
  std::vector<unsigned> place_on_cpu_;  // index: CPU; empty unless workers are bound
  double ns_per_tick_;
  std::uint64_t spin_ticks_, away_ticks_, force_ticks_, look_ticks_, return_ticks_, started_;

  // One at a time; what follows is the caretaker's.
  std::atomic<bool> has_caretaker_{false};
  struct last_look {
    std::uint64_t steps = 0;
    bool waits = false;  // something does
  };
  std::vector<last_look> last_looks_;  // at each worker
  std::int64_t looked_at_ns_ = 0;

  std::atomic<std::uint32_t> searchers_{0};
  std::atomic<std::uint32_t> stopping_{0};
  std::vector<std::thread> threads_;

  injected_work injected_;
  std::atomic<std::uint64_t> found_injected_at_{0};  // in ticks
  std::atomic<std::uint32_t> foreign_wakers_{0};

  lone_watch* const watch_;
  std::atomic<std::uint32_t> waiting_outside_{0};  // in enter(), without a place

  std::atomic<const os::futex_word*> standing_in_{nullptr};  // whose place's state that is

  std::atomic<std::uint32_t> idle_waiters_{0};
  os::futex_word idle_epoch_{0};

  // Frames that were there when the last failure was settled. Of no partner.
  std::atomic<std::int64_t> dead_frames_{0};

  mutable std::mutex network_worker_mutex_;
  const worker* network_worker_ = nullptr;

  stack_pools pools_{stacks};
};

}  // namespace strata::detail
