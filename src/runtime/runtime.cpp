// SPDX-License-Identifier: Apache-2.0
#include "strata/runtime.hpp"

#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "base/with_threads.hpp"
#include "cluster/engine/engine.hpp"
#include "launch/job.hpp"
#include "launch/joining/join.hpp"
#include "messages/messenger.hpp"
#include "runtime/report_signal.hpp"
#include "sched/lone_watch.hpp"
#include "sched/scheduler.hpp"
#include "threads/seeing.hpp"

namespace strata {

namespace {

// What the launcher has decided stands in for what the settings leave open.
options settled(options settings, const launch::control_line* line) {
  if (line == nullptr) return settings;
  const launch::job_description& job = line->job();
  settings.node = job.node;
  // The launcher has given this node no cores of its own: bound, all nodes would sit on the first.
  if (job.cpus.empty()) settings.bind = false;
  if (settings.workers == 0) {
    settings.workers = job.workers != 0 ? job.workers : static_cast<unsigned>(job.cpus.size());
  }
  return settings;
}

// Connects this node to the others of its job. Null: one was lost meanwhile. The launcher names it,
// and only node 0 tells the program.
std::unique_ptr<cluster::engine> join_job(detail::scheduler& workers,
                                          std::unique_ptr<launch::control_line> line,
                                          const options& settings, messages::messenger& m) {
  const bool ends_silently = line->job().node != 0 && line->tells_of_losses();
  try {
    return std::make_unique<cluster::engine>(workers, std::move(line), settings, m);
  } catch (const node_lost_error&) {
    if (!ends_silently) throw;
    return nullptr;
  }
}

}  // namespace

runtime::runtime(const options& wanted) {
  // Of a thread of another one: whoever of its worker makes one meanwhile would want the same
  // locks.
  const detail::uninterrupted guard;
  wanted.validate();
  std::unique_ptr<launch::control_line> line = launch::join(wanted);
  const options settings = settled(wanted, line.get());
  const bool process_goes_on = line != nullptr && line->process_goes_on();
  const std::vector<int> cpus = line != nullptr ? line->job().cpus : std::vector<int>{};
  messages_ = std::make_unique<messages::messenger>();
  if (line == nullptr || (line->job().nodes == 1 && !line->job().elastic))
    watch_ = std::make_unique<detail::lone_watch>(std::int64_t{settings.stall_s} * 1'000'000'000,
                                                  [this] { return describe_waits(); });
  const std::string us = "the runtime";
  scheduler_ = with_threads(
      us, [&] { return std::make_unique<detail::scheduler>(settings, cpus, watch_.get()); });
  scheduler_->messenger = messages_.get();
  // Before the others know that this node is there: one of them may be asked at once.
  // A dump says who waits as well.
  if (line != nullptr || settings.dump_signal != "QUIT") report_signal::take(this, line != nullptr);
  report_signal::unless_kept signal(this);
  const bool joins = line != nullptr;
  try {
    // First: without it, this node does not join.
    seeing_ = with_threads(us, [&] { return std::make_unique<detail::seeing>(settings); });
    if (joins) engine_ = join_job(*scheduler_, std::move(line), settings, *messages_);
  } catch (...) {  // others may have sent work here before
    seeing_.reset();
    report_signal::give_up(this);
    messages_->retire();
    end_workers();
    throw;
  }
  if (joins && engine_ == nullptr) {
    seeing_.reset();
    report_signal::give_up(this);
    scheduler_.reset();
    std::exit(1);
  }
  if (watch_ != nullptr)
    report_signal::answer_by(this, *watch_);
  else
    report_signal::answer_by(this, *engine_);
  if (settings.print_binding) std::fprintf(stderr, "strata: %s\n", describe().c_str());
  if (engine_ == nullptr || engine_->self() == 0) {
    signal.keep();
    return;
  }
  serve_and_end(process_goes_on);
}

// Where there will be no runtime to end. Open endpoints keep the messenger, which has been retired.
void runtime::end_workers() {
  if (has_calls_in_progress())
    (void)scheduler_.release();
  else
    scheduler_.reset();
  messages::messenger::let_go(std::move(messages_));
}

void runtime::serve_and_end(bool process_goes_on) {
  const int status = engine_->serve();
  seeing_.reset();  // handlers go in the opposite order
  report_signal::give_up(this);
  print_statistics();
  engine_.reset();
  messages_->retire();
  has_served_ = true;
  if (process_goes_on) {
    if (status == 0) return;
    end_workers();
    throw error("the job that this node served has lost a node");
  }
  if (status != 0 && has_calls_in_progress()) {
    std::fflush(nullptr);
    std::_Exit(status);
  }
  scheduler_.reset();
  std::exit(status);
}

// Of strata::blocking(): when they are over they write to their callers' stacks, which stay until
// then, and that may be for ever.
bool runtime::has_calls_in_progress() const noexcept {
  return scheduler_->calls_in_progress.load(std::memory_order_seq_cst) != 0;
}

// Nothing is told any more by way of this object, which is gone then. All of it is there until the
// process has ended, and for those who look for leaks.
void runtime::leave_to_process() {
  if (!has_served_) print_statistics();
  seeing_.reset();
  report_signal::give_up(this);
  if (watch_ != nullptr) watch_->stop();
  using all =
      std::tuple<decltype(messages_), decltype(watch_), decltype(scheduler_), decltype(engine_)>;
  static auto& left = *new std::vector<all>;
  left.emplace_back(std::move(messages_), std::move(watch_), std::move(scheduler_),
                    std::move(engine_));
}

runtime::~runtime() {
  const detail::uninterrupted guard;  // as above
  if (scheduler_->is_kept_by_caller()) {
    leave_to_process();
    return;
  }
  scheduler_->wait_idle();
  if (engine_ != nullptr) engine_->finish();
  // By exit() of another thread than those: they never return, and keep their workers' places.
  if (scheduler_->is_awaited()) {
    leave_to_process();
    return;
  }
  seeing_.reset();
  report_signal::give_up(this);
  if (watch_ != nullptr) watch_->stop();
  if (!has_served_) print_statistics();
  engine_.reset();
  messages_->retire();
  // Whoever ends an endpoint may be among what the workers still have.
  scheduler_.reset();
  messages::messenger::let_go(std::move(messages_));
}

void runtime::print_statistics() const {
  if (!scheduler_->settings.stats) {
    if (scheduler_->settings.profile) std::fputs(stats().profile_text().c_str(), stderr);
    return;
  }
  std::string text = stats().to_text();
  if (engine_ != nullptr) text = engine_->statistics_text() + text;
  std::fputs(text.c_str(), stderr);
}

void runtime::wait_idle() {
  if (scheduler_->is_kept_by_caller())
    throw misuse_error("wait_idle() within the runtime would wait for itself");
  const detail::uninterrupted guard;  // as above
  scheduler_->wait_idle();
  if (engine_ != nullptr) engine_->wait_until_quiet();
}

unsigned runtime::workers() const noexcept { return scheduler_->workers(); }

statistics runtime::stats() const {
  statistics s = scheduler_->read_statistics();
  const detail::uninterrupted guard;  // no other thread of this worker waits for these locks
  s.messages = messages_->counted();
  if (engine_ != nullptr) {
    s.transports = engine_->traffic();
    s.forwarded = engine_->passed_on();
  }
  return s;
}

std::string runtime::describe_waits() const {
  if (engine_ != nullptr) return engine_->describe_waits_here();
  return "strata: " + describe() + "\n" + scheduler_->describe_waits() +
         messages_->describe_waits();
}

std::string runtime::describe() const {
  return engine_ == nullptr ? scheduler_->binding()
                            : engine_->describe() + ", " + scheduler_->binding();
}

bool runtime::is_inside() const noexcept { return detail::this_worker().owner == scheduler_.get(); }

void runtime::refuse_after_service() const {
  if (has_served_) {
    throw misuse_error(
        "this node has served the job, which is over: only node 0 runs something (has_served())");
  }
}

std::exception_ptr runtime::enter(detail::root_task& root) {
  refuse_after_service();
  return scheduler_->enter(root);
}

void runtime::inject(detail::task& t) {
  refuse_after_service();
  scheduler_->inject(&t);
}

}  // namespace strata
