// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "sched/scheduler.hpp"
#include "strata/stats.hpp"

namespace strata {

const char* to_string(bucket b) noexcept {
  constexpr std::array<const char*, bucket_count> names{
      "work", "steal",     "steal-wait", "transfer", "transfer-wait",
      "lock", "lock-wait", "poll",       "dispatch", "idle"};
  return names[static_cast<std::size_t>(b)];
}

namespace {

struct event_column {
  const char* name;
  std::uint64_t worker_statistics::*value;
};
constexpr std::array<event_column, 20> columns{{
    {"forks", &worker_statistics::forks},
    {"spawns", &worker_statistics::spawns},
    {"tokens", &worker_statistics::tokens},
    {"activations", &worker_statistics::activations},
    {"fibers", &worker_statistics::fibers},
    {"terminations", &worker_statistics::terminations},
    {"on a stack", &worker_statistics::dispatched},
    {"steals", &worker_statistics::steals},
    {"steals lost", &worker_statistics::steals_lost},
    {"steals empty", &worker_statistics::steals_empty},
    {"forced", &worker_statistics::forced},
    {"suspensions", &worker_statistics::suspensions},
    {"parks", &worker_statistics::parks},
    {"preemptions", &worker_statistics::preemptions},
    {"waived", &worker_statistics::waived},
    {"hops", &worker_statistics::hops},
    {"queue locks", &worker_statistics::queue_locks},
    {"rescues", &worker_statistics::rescues},
    {"read-mod-write", &worker_statistics::read_modify_writes},
    {"shares", &worker_statistics::shares},
}};

template <class... Values>
void append(std::string& out, const char* format, Values... values) {
  char line[128];
  const int n = std::snprintf(line, sizeof line, format, values...);
  if (n > 0) out.append(line, std::min(static_cast<std::size_t>(n), sizeof line - 1));
}

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string text_of(const transport_statistics& t, const std::string& more) {
  return "sent " + number(t.messages_out) + " messages, " + number(t.bytes_out) + " bytes, " +
         number(t.writes) + " writes, " + number(t.wakes) + " wakes; received " +
         number(t.messages_in) + " messages, " + number(t.bytes_in) + " bytes" + more + "\n";
}

std::string text_of(const std::vector<transport_statistics>& each, std::uint64_t forwarded) {
  if (each.empty()) return {};
  transport_statistics all;
  std::string parts;
  for (const transport_statistics& t : each) {
    if (each.size() > 1) parts += "  by " + t.name + ": " + text_of(t, "");
    all.messages_out += t.messages_out;
    all.bytes_out += t.bytes_out;
    all.messages_in += t.messages_in;
    all.bytes_in += t.bytes_in;
    all.writes += t.writes;
    all.wakes += t.wakes;
  }
  const std::string passed_on = forwarded != 0 ? "; forwarded " + number(forwarded) : "";
  return "  " + text_of(all, passed_on) + parts;
}

std::string text_of(const message_statistics& m) {
  const std::uint64_t within = m.handed_over + m.copied_once + m.copied_twice;
  if (within + m.sent_whole + m.helped + m.read + m.moved + m.pulled == 0) return {};
  return "  messages within the process " + number(within) + ", handed over without a copy " +
         number(m.handed_over) + ", copied once " + number(m.copied_once) + ", twice " +
         number(m.copied_twice) + "; to other nodes " + number(m.sent_whole) +
         "; large ones read from their sender " + number(m.read) + ", moved by the network " +
         number(m.moved) + ", in pieces " + number(m.pulled) + ", written in part where they go " +
         number(m.helped) + "; bytes copied " + number(m.bytes_copied) + "\n";
}

}  // namespace

worker_statistics statistics::total() const {
  worker_statistics sum;
  for (const worker_statistics& w : workers) {
    for (std::size_t b = 0; b < bucket_count; ++b) sum.ns[b] += w.ns[b];
    for (const event_column& c : columns) sum.*c.value += w.*c.value;
    sum.resumptions += w.resumptions;
  }
  return sum;
}

std::string statistics::to_text() const {
  const worker_statistics sum = total();
  std::string out = "strata: time of each worker, ms\n";
  append(out, "  %-14s %12s", "", "all");
  for (std::size_t i = 0; i < workers.size(); ++i) append(out, " %11zu", i);
  out += '\n';
  for (std::size_t b = 0; b < bucket_count; ++b) {
    if (sum.ns[b] == 0) continue;
    append(out, "  %-14s %12.3f", to_string(static_cast<bucket>(b)),
           static_cast<double>(sum.ns[b]) / 1e6);
    for (const worker_statistics& w : workers) {
      append(out, " %11.3f", static_cast<double>(w.ns[b]) / 1e6);
    }
    out += '\n';
  }
  out += "strata: events\n";
  for (const event_column& c : columns) {
    if (sum.*c.value == 0) continue;
    append(out, "  %-14s %12llu", c.name, static_cast<unsigned long long>(sum.*c.value));
    for (const worker_statistics& w : workers) {
      append(out, " %11llu", static_cast<unsigned long long>(w.*c.value));
    }
    out += '\n';
  }
  append(out, "  %-14s %12lld\n", "live frames", static_cast<long long>(live_frames));
  append(out, "  %-14s %12zu\n", "stacks", stacks_max);
  if (stack_bytes_deepest > 0) {
    append(out, "  %-14s %12zu\n", "deepest, KiB", stack_bytes_deepest / 1024);
    append(out, "  %-14s %12zu\n", "memory, KiB", stack_bytes_resident / 1024);
  }
  out += profile_text();
  const std::string told = text_of(transports, forwarded) + text_of(messages);
  if (!told.empty()) out += "strata: messages\n" + told;
  return out;
}

std::string statistics::profile_text() const {
  std::string out;
  if (work_ns > 0) {
    append(out, "strata: work %.6f s, span %.6f s, parallelism %.1f\n", work_ns / 1e9,
           span_ns / 1e9, span_ns > 0 ? work_ns / span_ns : 0.0);
  }
  return out;
}

namespace detail {

std::uint64_t scheduler::steps_of(const place& p) noexcept {
  const event_counters& e = p.events;
  return e.dispatched.read() + e.resumptions.read() + e.fibers.read() + e.activations.read();
}

std::uint64_t scheduler::steps() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& p : places_) sum += steps_of(*p);
  return sum;
}

statistics scheduler::read_statistics() const {
  const double ns = ns_per_tick_;
  const std::uint64_t now = os::ticks();
  statistics all;
  all.elapsed_ns = static_cast<std::int64_t>(static_cast<double>(now - started_) * ns);
  for (const auto& p : places_) {
    worker_statistics w;
    const auto ticks = p->time.read(now);
    for (std::size_t b = 0; b < bucket_count; ++b) {
      w.ns[b] = static_cast<std::int64_t>(static_cast<double>(ticks[b]) * ns);
    }
    const event_counters& e = p->events;
    w.forks = e.forks.read();
    w.spawns = e.spawns.read();
    w.tokens = e.tokens.read();
    w.activations = e.activations.read();
    w.fibers = e.fibers.read();
    w.terminations = e.terminations.read();
    w.dispatched = e.dispatched.read();
    w.steals = e.steals.read();
    w.steals_lost = e.steals_lost.read();
    w.steals_empty = e.steals_empty.read();
    w.forced = e.forced.read();
    w.suspensions = e.suspensions.read();
    w.resumptions = e.resumptions.read();
    w.parks = e.parks.read();
    w.preemptions = e.preemptions.read();
    w.waived = e.waived.read();
    w.hops = e.hops.read();
    w.queue_locks = e.queue_locks.read();
    w.rescues = e.rescues.read();
    w.read_modify_writes = e.read_modify_writes.read();
    w.shares = e.shares.read();
    all.live_frames += p->frames.live();
    all.workers.push_back(w);
  }
  {
    const uninterrupted guard;
    const std::lock_guard lock(network_worker_mutex_);
    if (network_worker_ != nullptr) all.live_frames += network_worker_->frames.live();
  }
  const auto add = [&](const stack_pool& pool) {
    all.stacks_max += pool.taken_max();
    if (!settings.stats) return;
    const stack_pool::use use = pool.measure();
    all.stack_bytes_deepest = std::max(all.stack_bytes_deepest, use.deepest);
    all.stack_bytes_resident += use.resident;
  };
  add(stacks);
  // Those beyond are taken while all the usual ones are in use.
  const std::vector<const stack_pool*> further = [this] {
    const uninterrupted guard;
    return pools_.all_further();
  }();
  for (const stack_pool* const pool : further) add(*pool);
  all.work_ns = static_cast<double>(work_ticks.load(std::memory_order_relaxed)) * ns;
  all.span_ns = static_cast<double>(span_ticks.load(std::memory_order_relaxed)) * ns;
  return all;
}

}  // namespace detail
}  // namespace strata
