// SPDX-License-Identifier: Apache-2.0
// Who looks for messages while workers are busy, with adaptive reception: a receiver thread that
// sleeps until some come, or, while they come often, the workers between two tasks.
//
// A look costs a worker a fraction of a microsecond and answers within a task; waking the receiver
// takes several, and it wants a core that a worker has. But a worker that is deep in one long task
// looks at nothing. So the receivers hand over to the workers when messages come in close
// succession, wake up now and then to see that somebody looks, the less often the longer somebody
// did, and take over again when the messages become few, or when a worker did not look in time;
// after that they keep it for more messages each time, unless the workers had found many: then it
// was the odd long task, or another program on the core. Where a worker is late that has nothing to
// do but to look, somebody else has its core, and the receivers would sleep where it still says
// that it looks: they look in its place each time that they wake up, and go on watching.
//
// An idle worker looks all the time. For what it finds no receiver is woken; but while one sleeps
// where that comes in, a worker that has something to do must say so and look once more, which
// costs two system calls each time on a socket (net::attendance). So receivers hand over to idle
// workers, too, and take over again when the last of those falls asleep. Only in quick
// conversations: a worker that has found something may go deep into a task.
//
// Everything here is a guess about what is cheaper: whatever it says, no message waits for longer
// than about late_ns and watch_max_ns together, a millisecond. Of several transports a look at one
// is none: who does that often looks at all now and then.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace strata::cluster {

class attention {
 public:
  // A worker is late when it has not looked for late_ns; with half of that a thread was late each
  // time that sends a dozen messages through a socket before it waits. The receivers see to it
  // after watch_min_ns, and each time that it was not, after twice as long: waking up ten thousand
  // times a second, they made streams half as fast. From watch_min_ns again when one was late that
  // had not found many.
  static constexpr std::int64_t late_ns = 200'000;
  static constexpr std::int64_t watch_min_ns = 100'000, watch_max_ns = 800'000;
  // Two messages within this time are a conversation; one that is silent for as long as `over_ns`
  // has ended.
  static constexpr std::int64_t close_ns = 5'000'000;
  static constexpr std::int64_t over_ns = 500'000;
  // So often the receivers find something before they hand over again: at some 3 us for each
  // waking, by then that has cost as much as the message that waited for a worker.
  static constexpr std::uint32_t keep_min = 32, keep_max = 1024;
  // Idle workers that have found something so many times, each time so soon after the last, hold a
  // quick conversation.
  static constexpr std::uint32_t quick_min = 32;
  static constexpr std::int64_t quick_ns = 50'000;
  // Workers that have found something so many times as often as the receivers would keep it.
  static constexpr std::uint32_t long_ago = 10;
  // Of so many looks one says when it was: a clock costs a tenth of what a message within a host
  // does. The others are counted, so who watches sees that there was one, but not when. Each says
  // so where half of late_ns may pass without one that does: the receivers would come that often.
  static constexpr std::uint32_t told_every_max = 16;

  // ---- receivers ----

  // Messages have been handed over while workers were busy.
  void heard_by_receiver(std::int64_t now_ns) noexcept {
    const bool again = now_ns - heard_at_.exchange(now_ns, std::memory_order_relaxed) < close_ns;
    if (!is_kept() && again) hand_over(now_ns, false);
  }
  // False: the receivers look again, from now on. True: they sleep for watch_ns(), and look before
  // that where is_late(). `idle`: a worker looks for work, and for messages.
  bool workers_go_on(std::int64_t now_ns, bool idle = false) noexcept {
    if (!workers_look_.load(std::memory_order_relaxed)) return false;
    notice(now_ns);
    if (is_late(now_ns) && !idle) {
      std::uint32_t keep = keep_.load(std::memory_order_relaxed);
      if (finds() - found_before_.load(std::memory_order_relaxed) > long_ago * keep)
        keep = keep_min;
      else
        watch_ns_.store(watch_min_ns, std::memory_order_relaxed);
      kept_.store(keep, std::memory_order_relaxed);
      keep_.store(std::min(2 * keep, keep_max), std::memory_order_relaxed);
    } else if (now_ns - heard_at_.load(std::memory_order_relaxed) > over_ns) {
      keep_.store(keep_min, std::memory_order_relaxed);
    } else {
      return true;
    }
    receivers_look();
    return false;
  }
  // No worker has looked in time, as far as workers_go_on() has seen.
  [[nodiscard]] bool is_late(std::int64_t now_ns) const noexcept {
    return now_ns - std::max(looked_at_.load(std::memory_order_relaxed),
                             noticed_at_.load(std::memory_order_relaxed)) >
           late_ns;
  }
  // A receiver has found something in the place of a worker that is late: the conversation goes on.
  void heard_by_watcher(std::int64_t now_ns) noexcept {
    heard_at_.store(now_ns, std::memory_order_relaxed);
  }
  // How long to sleep now; longer the next time. Until a multiple of that, so that all receivers of
  // a host wake at the same times: each of them takes a core from somebody, and in a conversation
  // the other one waits meanwhile.
  [[nodiscard]] std::int64_t watch_ns(std::int64_t now_ns) noexcept {
    // Somebody has looked since we did, perhaps long ago.
    if (now_ns - looked_at_.load(std::memory_order_relaxed) > late_ns) return late_ns;
    const std::int64_t most = watch_ns_.load(std::memory_order_relaxed);
    watch_ns_.store(std::min(2 * most, watch_max_ns), std::memory_order_relaxed);
    return most - now_ns % most;
  }
  void receivers_look() noexcept { workers_look_.store(false, std::memory_order_relaxed); }

  // ---- workers ----

  // One that is idle has found something. True: the receivers hand over, and are to be
  // woken for that.
  [[nodiscard]] bool heard_by_idle_worker(std::int64_t now_ns) noexcept {
    const bool quick =
        now_ns - found_idly_at_.exchange(now_ns, std::memory_order_relaxed) < quick_ns;
    const std::uint32_t run = quick ? quick_.load(std::memory_order_relaxed) + 1 : 1;
    const bool enough = !is_kept() && run >= quick_min;
    quick_.store(enough ? 0 : run, std::memory_order_relaxed);
    if (enough) hand_over(now_ns, true);
    return enough;
  }
  // A worker that found nothing is about to sleep, and no other one looks. True: the receivers take
  // over again at once.
  [[nodiscard]] bool idle_worker_sleeps() noexcept {
    if (!to_idle_.load(std::memory_order_relaxed) || !workers_look_.load(std::memory_order_relaxed))
      return false;
    receivers_look();
    return true;
  }

  [[nodiscard]] const std::atomic<bool>& workers_look() const noexcept { return workers_look_; }
  // Of so many looks, told_every_max or one, the next one is to say when it was.
  [[nodiscard]] std::uint32_t told_every() const noexcept {
    return told_every_.load(std::memory_order_relaxed);
  }
  void looked(std::int64_t now_ns, bool found) noexcept {
    looked_at_.store(now_ns, std::memory_order_relaxed);
    add_one(looks_else_);
    if (!found) return;
    heard_at_.store(now_ns, std::memory_order_relaxed);
    add_one(found_told_);
  }
  // Just now, or up to told_every_max - 1 looks ago.
  void looked(bool found) noexcept {
    add_one(looks_untold_);
    if (found) add_one(found_untold_);
  }
  // At one transport of several.
  void looked_nearby(bool found) noexcept {
    add_one(looks_else_);
    if (found) add_one(found_untold_);
  }

 private:
  // Several may do so at a time, and one is lost: it is about how many.
  static void add_one(std::atomic<std::uint32_t>& n) noexcept {
    n.store(n.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t finds() const noexcept {
    return found_told_.load(std::memory_order_relaxed) +
           found_untold_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t looks() const noexcept {
    return looks_untold_.load(std::memory_order_relaxed) +
           looks_else_.load(std::memory_order_relaxed);
  }
  // Counts what is found until the receivers may hand over again.
  bool is_kept() noexcept {
    const std::uint32_t left = kept_.load(std::memory_order_relaxed);
    if (left > 0) kept_.store(left - 1, std::memory_order_relaxed);
    return left > 0;
  }
  // A receiver: what workers have counted, and not told, since the last time.
  void notice(std::int64_t now_ns) noexcept {
    const std::uint32_t untold = looks_untold_.load(std::memory_order_relaxed);
    if (looks_noticed_.exchange(untold, std::memory_order_relaxed) != untold)
      noticed_at_.store(now_ns, std::memory_order_relaxed);
    const std::uint32_t found = found_untold_.load(std::memory_order_relaxed);
    if (found_noticed_.exchange(found, std::memory_order_relaxed) != found)
      heard_at_.store(now_ns, std::memory_order_relaxed);
    rate(now_ns);
  }
  // How often workers look says how many of the looks have to be told.
  void rate(std::int64_t now_ns) noexcept {
    const std::int64_t passed = now_ns - rated_at_.load(std::memory_order_relaxed);
    if (passed < watch_min_ns / 2) return;  // another receiver was here just now
    rated_at_.store(now_ns, std::memory_order_relaxed);
    const std::uint32_t seen = looks();
    const std::uint32_t more = seen - looks_rated_.exchange(seen, std::memory_order_relaxed);
    const bool often = more * (late_ns / 2) >= told_every_max * passed;
    const std::uint32_t every = often ? told_every_max : 1;
    if (told_every() != every) told_every_.store(every, std::memory_order_relaxed);
  }
  void hand_over(std::int64_t now_ns, bool to_idle) noexcept {
    to_idle_.store(to_idle, std::memory_order_relaxed);
    heard_at_.store(now_ns, std::memory_order_relaxed);
    looked_at_.store(now_ns, std::memory_order_relaxed);
    found_before_.store(finds(), std::memory_order_relaxed);
    found_noticed_.store(found_untold_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    looks_noticed_.store(looks_untold_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    looks_rated_.store(looks(), std::memory_order_relaxed);
    rated_at_.store(now_ns, std::memory_order_relaxed);
    workers_look_.store(true, std::memory_order_relaxed);
  }

  // All atomics are relaxed: each is a guess of its own, and publishes nothing. Three lines: what
  // all workers read between any two tasks, and receivers change now and then;
  alignas(64) std::atomic<bool> workers_look_{false};
  std::atomic<std::uint32_t> told_every_{told_every_max};
  // what workers write at each look (receivers read it: workers_go_on(); and write the times);
  alignas(64) std::atomic<std::int64_t> looked_at_{0};
  std::atomic<std::int64_t> heard_at_{-close_ns};
  std::atomic<std::uint32_t> looks_untold_{0};
  std::atomic<std::uint32_t> looks_else_{0};  // told, or nearby
  std::atomic<std::uint32_t> found_told_{0}, found_untold_{0};
  // and what receivers keep, or idle workers that hand over.
  alignas(64) std::atomic<std::int64_t> watch_ns_{watch_min_ns};
  // As the receivers have seen them last; and when they last saw another number of looks.
  std::atomic<std::uint32_t> looks_noticed_{0}, found_noticed_{0};
  std::atomic<std::int64_t> noticed_at_{0};
  std::atomic<std::uint32_t> looks_rated_{0};  // looks() then
  std::atomic<std::int64_t> rated_at_{0};
  std::atomic<std::uint32_t> found_before_{0};  // finds() when they handed over
  std::atomic<std::uint32_t> kept_{0}, keep_{keep_min};
  std::atomic<std::uint32_t> quick_{0};  // finds of idle workers, one soon after the other
  std::atomic<std::int64_t> found_idly_at_{-quick_ns};
  std::atomic<bool> to_idle_{false};  // the receivers have handed over last
};

}  // namespace strata::cluster
