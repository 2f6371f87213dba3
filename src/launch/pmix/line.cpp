// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix/line.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <set>
#include <utility>

#include "base/errno_error.hpp"
#include "launch/messages.hpp"
#include "launch/own_address.hpp"
#include "launch/pmix/client.hpp"
#include "launch/pmix/cores.hpp"
#include "launch/pmix/mpi.hpp"
#include "launch/pmix/seat.hpp"
#include "launch/ucx_variables.hpp"
#include "os/clock.hpp"
#include "os/quota.hpp"
#include "os/topology.hpp"

namespace strata::launch::pmix {

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr unsigned nodes_most = 4096;
// From a lost node to the end of those that have not ended by themselves, as under our launcher.
constexpr std::int64_t grace_ns = 4000 * ms;
// To find out who has not come, when not all have: those who have are known at once.
constexpr std::int64_t roll_call_ns = 500 * ms;
// For the one who then speaks, who may have begun to wait a little later.
constexpr int speaker_ms = 2000;

secret make_secret(transport_choice transport) {
  secret s;
  s.transport = transport;
  if (::getrandom(&s.job, sizeof s.job, 0) != sizeof s.job ||
      ::getrandom(s.key.data(), s.key.size(), 0) != static_cast<ssize_t>(s.key.size())) {
    throw errno_error("cannot make a key for the job", errno);
  }
  return s;
}

class pmix_line final : public control_line {
 public:
  pmix_line(std::unique_ptr<client> us, const options& settings, unsigned time)
      : us_(std::move(us)),
        prefix_("strata." + std::to_string(time) + "."),
        limit_s_(settings.start_limit_s),
        deadline_ns_(os::now_ns() + std::int64_t{limit_s_} * 1000 * ms),
        closing_(::eventfd(0, EFD_CLOEXEC)),
        here_(us_->peers_of_host()),
        place_(static_cast<unsigned>(std::find(here_.begin(), here_.end(), us_->rank()) -
                                     here_.begin())) {
    if (!closing_) throw errno_error("cannot create an event descriptor", errno);
    everybody_.resize(us_->size());
    std::iota(everybody_.begin(), everybody_.end(), 0U);
    job_.node = static_cast<node_id>(us_->rank());
    job_.nodes = job_.founders = job_.capacity = static_cast<node_id>(us_->size());
    job_.start_limit_ns = std::int64_t{limit_s_} * 1000 * ms;
    const std::vector<seat> seats =
        take_seats(transport_named(settings.transport).value_or(transport_choice::automatic));
    find_hosts(seats);
    share_cores_of_host(seats, settings);
    share_memory_of_host(seats);
    const bool one_host = here_.size() == everybody_.size();
    job_.bind_address = listening_address(settings.bind_address, one_host);
    const network_kind usual = network_of(job_.transport);
    if (usual == network_kind::ucx ||
        has_kind(networks_in(settings.networks, usual), network_kind::ucx))
      set_ucx_variables();
  }

  [[nodiscard]] const job_description& job() const noexcept override { return job_; }

  std::vector<address> exchange(const address& mine, const std::string& build_id) override {
    us_->put(prefix_ + "entry", pack(entry{build_id, mine}));
    const auto told = meet("entry");
    std::vector<address> directory;
    std::string first_build;
    for (const unsigned node : everybody_) {
      entry e = unpack_entry(told[node]);
      if (node == 0) first_build = e.build_id;
      if (e.build_id != first_build) {
        throw user_error("node " + std::to_string(node) +
                         " runs another build than node 0 (build ids " + e.build_id + " and " +
                         first_build + "); install the same file on every host");
      }
      directory.push_back(std::move(e.where));
    }
    return directory;
  }

  std::vector<std::string> share_found(const std::string& mine) override {
    const std::string key = "found" + std::to_string(found_told_++);
    us_->put(prefix_ + key, pack_found(mine));
    std::vector<std::string> all;
    for (const std::string& told : meet(key)) all.push_back(unpack_found_networks(told));
    return all;
  }

  std::vector<closed_link> share_closed(const std::vector<closed_link>& mine) override {
    const std::string key = "closed" + std::to_string(closed_told_++);
    us_->put(prefix_ + key, pack(mine));
    for (const std::string& told : meet(key)) {
      const std::vector<closed_link> one = unpack_closed_links(told);
      closed_links_.insert(one.begin(), one.end());
    }
    return {closed_links_.begin(), closed_links_.end()};
  }

  std::vector<std::vector<measured_link>> share_measurements(
      const std::vector<measured_link>& mine) override {
    us_->put(prefix_ + "links", pack(mine));
    std::vector<std::vector<measured_link>> all;
    for (const std::string& told : meet("links")) all.push_back(unpack_links(told));
    return all;
  }

  bool wait(const job_news& news) override;
  // Nobody is admitted to a job of the site's.
  void say(word_to_launcher, node_id) noexcept override {}
  // The site sees processes only, and ends what is left when one has failed.
  void tell_loss(node_id, const std::string&) noexcept override {}

  void close() noexcept override {
    if (closed_.exchange(true)) return;
    if (memory_ != nullptr) memory_->leave(place_);
    const std::uint64_t one = 1;
    while (::write(closing_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  [[nodiscard]] bool process_goes_on() const noexcept override { return mpi_is_running(); }

 private:
  // Waits until all nodes have told something under `key`, and returns it.
  std::vector<std::string> meet(const std::string& key);
  [[noreturn]] void name_missing(const std::string& key);

  std::vector<seat> take_seats(transport_choice transport);
  void find_hosts(const std::vector<seat>& seats);
  void share_cores_of_host(const std::vector<seat>& seats, const options& settings);
  void share_memory_of_host(const std::vector<seat>& seats);
  void watch_neighbours(const std::vector<seat>& seats);
  [[noreturn]] void end_job(const std::string& why);

  struct neighbour {
    unsigned place;  // among the nodes of this host
    os::descriptor process;
  };

  std::unique_ptr<client> us_;
  const std::string prefix_;  // of this job's keys, which are never forgotten by PMIx
  const unsigned limit_s_;
  const std::int64_t deadline_ns_;
  os::descriptor closing_;  // an eventfd: readable after close()
  std::atomic<bool> closed_{false};
  std::vector<unsigned> everybody_;
  const std::vector<unsigned> here_;  // nodes of this host
  const unsigned place_;              // ours among them
  std::unique_ptr<host_memory> memory_;
  std::vector<neighbour> neighbours_;  // that have not ended; with memory_ only
  job_description job_;
  std::set<closed_link> closed_links_;  // that all have told of
  unsigned closed_told_ = 0;
  unsigned found_told_ = 0;
};

// ---- meetings ----

std::vector<std::string> pmix_line::meet(const std::string& key) {
  if (!us_->meet(deadline_ns_)) name_missing(key);
  const auto told = us_->get(everybody_, prefix_ + key, deadline_ns_);
  std::vector<std::string> all;
  for (const auto& one : told) {
    if (!one) name_missing(key);
    all.push_back(*one);
  }
  return all;
}

void pmix_line::name_missing(const std::string& key) {
  const auto told = us_->get(everybody_, prefix_ + key, os::now_ns() + roll_call_ns);
  std::vector<int> missing;
  unsigned first_here = 0;
  for (const unsigned node : everybody_) {
    if (!told[node]) missing.push_back(static_cast<int>(node));
  }
  while (first_here < told.size() && !told[first_here]) ++first_here;
  const std::string who = missing.empty()
                              ? "not all nodes"
                              : (missing.size() == 1 ? "node " : "nodes ") + os::to_ranges(missing);
  const std::string what = who + " did not join within " + std::to_string(limit_s_) +
                           " s (--strata-start-limit-s sets the limit)";
  // Node 0 speaks for the job. Without it, the first that is there does.
  if (first_here != 0 && first_here == us_->rank())
    std::fprintf(stderr, "strata: %s\n", what.c_str());
  // Most launchers end all processes when one has failed, which would cut it short.
  if (first_here != us_->rank()) {
    pollfd gone{us_->gone_fd(), POLLIN, 0};
    ::poll(&gone, 1, speaker_ms);
  }
  if (missing.empty()) throw error(what);
  throw node_lost_error(static_cast<node_id>(missing.front()), what);
}

std::vector<seat> pmix_line::take_seats(transport_choice transport) {
  seat mine;
  mine.process = static_cast<std::uint32_t>(::getpid());
  mine.first_there = here_.front();
  mine.cpus = os::allowed_cpus();
  if (place_ == 0 && here_.size() > 1) {
    memory_ = host_memory::make();
    if (memory_ != nullptr) mine.memory = memory_->where();
  }
  us_->put(prefix_ + "seat", pack(mine));
  if (us_->rank() == 0) us_->put(prefix_ + "secret", pack(make_secret(transport)));
  std::vector<seat> seats;
  for (const std::string& told : meet("seat")) seats.push_back(unpack_seat(told));
  const auto told = us_->get({0}, prefix_ + "secret", deadline_ns_);
  if (!told[0]) throw error("PMIx: node 0 has not told the job's key");
  const secret s = unpack_secret(*told[0]);
  job_.job = s.job;
  job_.key = s.key;
  job_.transport = s.transport;
  return seats;
}

void pmix_line::find_hosts(const std::vector<seat>& seats) {
  std::vector<std::uint32_t> firsts;  // index: number of a host
  for (const seat& s : seats) {
    auto found = std::find(firsts.begin(), firsts.end(), s.first_there);
    if (found == firsts.end()) found = firsts.insert(found, s.first_there);
    job_.host_of.push_back(static_cast<std::uint16_t>(found - firsts.begin()));
  }
  if (job_.transport == transport_choice::shm && firsts.size() > 1) {
    throw user_error("transport=shm works within one host, and this job has " +
                     std::to_string(firsts.size()) + "; leave it out");
  }
}

void pmix_line::share_cores_of_host(const std::vector<seat>& seats, const options& settings) {
  std::vector<std::vector<int>> masks;
  for (const unsigned node : here_) masks.push_back(seats[node].cpus);
  own_cores mine = choose_cores(os::topology::machine(), masks, place_, os::read_cpu_quota().cores,
                                settings.workers, settings.bind);
  job_.cpus = std::move(mine.share.cpus);
  job_.workers = mine.share.workers;
  if (job_.node == 0 && !mine.warning.empty())
    std::fprintf(stderr, "strata: %s\n", mine.warning.c_str());
}

void pmix_line::share_memory_of_host(const std::vector<seat>& seats) {
  if (place_ != 0) memory_ = host_memory::find(seats[here_.front()].memory);
  if (memory_ != nullptr) watch_neighbours(seats);
  us_->put(prefix_ + "memory", memory_ != nullptr ? "yes" : "no");
  const auto told = meet("memory");
  const bool all =
      std::all_of(here_.begin(), here_.end(), [&](unsigned node) { return told[node] == "yes"; });
  if (here_.size() > 1 && !all) {
    memory_.reset();
    neighbours_.clear();
    if (job_.transport == transport_choice::shm)
      throw user_error("the nodes of this host cannot share memory; leave transport=shm out");
  }
  if (memory_ != nullptr && uses_memory(job_.transport)) job_.shared_memory = memory_->descriptor();
}

void pmix_line::watch_neighbours(const std::vector<seat>& seats) {
  for (unsigned place = 0; place < here_.size(); ++place) {
    if (place == place_) continue;
    const auto process = static_cast<pid_t>(seats[here_[place]].process);
    os::descriptor fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    // Without it nobody would tell us of its end; by sockets we hear ourselves.
    if (!fd) return memory_.reset();
    neighbours_.push_back({place, std::move(fd)});
  }
}

// ---- the end ----

bool pmix_line::wait(const job_news& news) {
  constexpr std::size_t fixed = 2;
  std::int64_t end_ns = 0;  // 0: nobody is lost
  std::string why;
  while (true) {
    std::vector<pollfd> events{{closing_.get(), POLLIN, 0}, {us_->gone_fd(), POLLIN, 0}};
    for (const neighbour& n : neighbours_) events.push_back({n.process.get(), POLLIN, 0});
    int timeout_ms = -1;
    if (end_ns != 0)
      timeout_ms = static_cast<int>(std::max<std::int64_t>(0, end_ns - os::now_ns()) / ms) + 1;
    if (::poll(events.data(), events.size(), timeout_ms) < 0) continue;  // a signal
    if (events[0].revents != 0) return false;
    if (events[1].revents != 0) return true;
    for (std::size_t i = neighbours_.size(); i-- > 0;) {
      if (events[fixed + i].revents == 0) continue;
      const unsigned place = neighbours_[i].place;
      neighbours_.erase(neighbours_.begin() + static_cast<std::ptrdiff_t>(i));
      if (memory_->has_left(place)) continue;
      const auto node = static_cast<node_id>(here_[place]);
      const std::string how = "its process ended before the job did";
      news.lost(node, how);
      if (end_ns == 0) {
        end_ns = os::now_ns() + grace_ns;
        why = "node " + std::to_string(node) + " is lost: " + how;
      }
    }
    if (end_ns != 0 && os::now_ns() >= end_ns) end_job(why);
  }
}

// Not all launchers end a job that has lost a process, and what runs here may never ask for it.
void pmix_line::end_job(const std::string& why) {
  std::fprintf(stderr, "strata: node %u is stopped: %s\n", unsigned{job_.node}, why.c_str());
  us_->abort_job(1, why);
  ::_exit(1);
}

}  // namespace

std::unique_ptr<control_line> join(const options& settings, unsigned time) {
  auto us = std::make_unique<client>();
  if (us->size() == 1) return nullptr;
  if (us->size() > nodes_most) {
    throw user_error("PMIx has started " + std::to_string(us->size()) +
                     " processes, and a job has at most " + std::to_string(nodes_most) +
                     " nodes; start one for each host, or set STRATA_LAUNCH=none");
  }
  return std::make_unique<pmix_line>(std::move(us), settings, time);
}

}  // namespace strata::launch::pmix
