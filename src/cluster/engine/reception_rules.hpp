// SPDX-License-Identifier: Apache-2.0
// Who of a node looks for messages, and when (requirement E16): its receiver threads, its workers
// between two tasks, or those that have nothing to do. All decisions, and nothing that they are
// carried out with: who sleeps where is the caller's, so the rules are the same in the engine and
// in a simulation.
//
//   blocking   receivers, who sleep where messages come in
//   polling    workers, between two tasks; receivers only while all workers sleep
//   watchdog   the same, and a receiver looks when nobody has for a while
//   adaptive   receivers or workers, as attention.hpp says
//
// Idle workers look with each of them; while they do, nobody else is woken for what comes.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cluster/engine/attention.hpp"

namespace strata::cluster {

enum class reception { adaptive, blocking, polling, watchdog };

class reception_rules {
 public:
  explicit reception_rules(reception how, std::int64_t watchdog_ns) noexcept
      : how_(how),
        watchdog_ns_(watchdog_ns),
        always_(how == reception::polling || how == reception::watchdog) {}

  [[nodiscard]] reception how() const noexcept { return how_; }
  // Workers are to look between two tasks.
  [[nodiscard]] const std::atomic<bool>& workers_look() const noexcept {
    return how_ == reception::adaptive ? attention_.workers_look() : always_;
  }

  // ---- a receiver ----

  // What it does next: it looks, and then sleeps where messages come in, unless has_handed_over();
  // or it leaves that to workers, sleeps for so long where only rouse() reaches it, and looks then
  // if is_overlooked(). Before that it looks once in place of a worker that `is_held_up`, and
  // heard_by_watcher() follows if it finds something.
  struct turn {
    bool looks;
    std::int64_t elsewhere_ns = 0;
    bool is_held_up = false;
  };
  // `asleep`: all workers are, or the node ends, and nobody else will look. `pollers`: idle workers
  // that look now. `most_ns`: for how long it may sleep.
  [[nodiscard]] turn begin_turn(std::int64_t now_ns, bool asleep, unsigned pollers,
                                std::int64_t most_ns) noexcept {
    constexpr turn look{.looks = true};
    if (!workers_look().load(std::memory_order_relaxed)) return look;
    if (how_ == reception::adaptive) {
      if (asleep) attention_.receivers_look();
      if (!attention_.workers_go_on(now_ns, pollers != 0)) return look;
      return {.looks = false,
              .elsewhere_ns = attention_.watch_ns(now_ns),
              .is_held_up = attention_.is_late(now_ns)};
    }
    if (asleep) return look;
    const bool is_watchdog = how_ == reception::watchdog;
    return {.looks = false,
            .elsewhere_ns = is_watchdog ? std::min(watchdog_ns_, most_ns) : most_ns};
  }
  [[nodiscard]] bool is_overlooked(std::int64_t now_ns) const noexcept {
    return how_ == reception::watchdog &&
           now_ns - looked_at_.load(std::memory_order_relaxed) >= watchdog_ns_;
  }
  // It has found something while workers were busy.
  void heard_by_receiver(std::int64_t now_ns) noexcept { attention_.heard_by_receiver(now_ns); }
  void heard_by_watcher(std::int64_t now_ns) noexcept { attention_.heard_by_watcher(now_ns); }
  [[nodiscard]] bool has_handed_over() const noexcept {
    return how_ == reception::adaptive && workers_look().load(std::memory_order_relaxed);
  }

  // ---- whoever looks, with the inbox ----

  // Whether begins_to_look() wants to know of it: reading the clock costs as much as finding
  // nothing.
  [[nodiscard]] bool counts_looks() const noexcept { return how_ == reception::watchdog; }
  void begins_to_look(std::int64_t now_ns) noexcept {
    looked_at_.store(now_ns, std::memory_order_relaxed);
  }

  // ---- a worker between two tasks, while *workers_look ----

  // Ticks are the caller's, `every` as many as lie between two looks at least. After a look has
  // ended, looked() follows where has_to_tell(), unless the inbox was somebody else's.
  [[nodiscard]] bool is_time_to_look(std::uint64_t ticks, std::uint64_t every) noexcept {
    if (ticks < next_look_.load(std::memory_order_relaxed)) return false;
    next_look_.store(ticks + every, std::memory_order_relaxed);
    return true;
  }
  [[nodiscard]] bool has_to_tell() const noexcept { return how_ == reception::adaptive; }
  void looked(std::int64_t now_ns, bool found) noexcept { attention_.looked(now_ns, found); }

  // ---- an idle worker, with the inbox, when it has looked ----

  // While has_handed_over(). now_ns(): the time, if it is needed; beside what has been found it
  // costs little, and that took some time.
  template <class Now>
  void looked_idly(bool found, Now&& now_ns) noexcept {
    found || is_to_tell() ? attention_.looked(now_ns(), found) : attention_.looked(false);
  }

  // ---- with the inbox, somebody who wants what comes by the nearest of so many transports ----

  // Looks there with nearby(), or now and then at all of them with everywhere(): who finds each
  // answer at once never does anything else. Each returns how many it has found, as this does.
  template <class Nearby, class Everywhere, class Now>
  std::size_t look_nearby(std::size_t transports, Nearby&& nearby, Everywhere&& everywhere,
                          Now&& now_ns) {
    const bool tells = is_to_tell();
    const std::size_t found = tells && transports > 1 ? everywhere() : nearby();
    if (!has_handed_over()) return found;
    if (tells)
      attention_.looked(now_ns(), found != 0);
    else if (transports == 1)
      attention_.looked(found != 0);
    else
      attention_.looked_nearby(found != 0);
    return found;
  }

  // ---- an idle worker ----

  // It has found something. True: receivers are to be called away from where messages come in.
  // `asleep_there`: one sleeps there. now_ns(): the time, if it is needed.
  template <class Now>
  [[nodiscard]] bool calls_receivers(bool asleep_there, Now&& now_ns) noexcept {
    if (how_ == reception::adaptive)
      return !workers_look().load(std::memory_order_relaxed) &&
             attention_.heard_by_idle_worker(now_ns());
    // Since this node was idle; they sleep elsewhere while it is not.
    return how_ != reception::blocking && asleep_there;
  }

  // ---- a worker that falls asleep ----

  // It had nothing to do, and `pollers` more look at present. True: receivers that sleep elsewhere
  // are to be roused.
  [[nodiscard]] bool is_to_rouse(unsigned pollers) noexcept {
    return how_ == reception::adaptive && pollers == 0 && attention_.idle_worker_sleeps();
  }
  // The same when it is the last one.
  [[nodiscard]] bool last_is_to_rouse() const noexcept { return how_ != reception::blocking; }

 private:
  [[nodiscard]] bool is_to_tell() noexcept {
    if (++looks_untold_ < attention_.told_every()) return false;
    looks_untold_ = 0;
    return true;
  }

  const reception how_;
  const std::int64_t watchdog_ns_;
  const std::atomic<bool> always_;
  attention attention_;
  alignas(64) std::atomic<std::uint64_t> next_look_{0};  // by any worker, between two tasks
  // With the inbox, of whoever looks; apart from that line, which others want meanwhile.
  alignas(64) std::atomic<std::int64_t> looked_at_{0};  // of the watchdog
  std::uint32_t looks_untold_ = 0;
};

}  // namespace strata::cluster
