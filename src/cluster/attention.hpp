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
// was the odd long task, or another program on the core. So it was where a worker had nothing to do
// but to look.
//
// An idle worker looks all the time. For what it finds no receiver is woken; but while one sleeps
// where that comes in, a worker that has something to do must say so and look once more, which
// costs two system calls each time on a socket (net::attendance). So receivers hand over to idle
// workers, too, and take over again when the last of those falls asleep. Only in quick
// conversations: a worker that has found something may go deep into a task.
//
// Everything here is a guess about what is cheaper: whatever it says, no message waits for longer
// than about late_ns and watch_max_ns together, a millisecond.
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
  // Of so many looks one at least says when it was: a clock costs a tenth of what a message within
  // a host does. The others are counted, so who watches sees that there was one, but not when.
  static constexpr std::uint32_t told_every = 16;

  // ---- receivers ----

  // Messages have been handed over while workers were busy.
  void heard_by_receiver(std::int64_t now_ns) noexcept {
    const bool again = now_ns - heard_at_.exchange(now_ns, std::memory_order_relaxed) < close_ns;
    if (!is_kept() && again) hand_over(now_ns, false);
  }
  // False: the receivers look again, from now on. True: they sleep for watch_ns(). `idle`: a worker
  // looks for work, and for messages; where it is late all the same, somebody else has its core.
  bool workers_go_on(std::int64_t now_ns, bool idle = false) noexcept {
    if (!workers_look_.load(std::memory_order_relaxed)) return false;
    notice(now_ns);
    const bool late = now_ns - std::max(looked_at_.load(std::memory_order_relaxed),
                                        noticed_at_.load(std::memory_order_relaxed)) >
                      late_ns;
    if (late && !idle) {
      std::uint32_t keep = keep_.load(std::memory_order_relaxed);
      if (found_.load(std::memory_order_relaxed) > long_ago * keep)
        keep = keep_min;
      else
        watch_ns_.store(watch_min_ns, std::memory_order_relaxed);
      kept_.store(keep, std::memory_order_relaxed);
      keep_.store(std::min(2 * keep, keep_max), std::memory_order_relaxed);
    } else if (late || now_ns - heard_at_.load(std::memory_order_relaxed) > over_ns) {
      keep_.store(keep_min, std::memory_order_relaxed);
    } else {
      return true;
    }
    receivers_look();
    return false;
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
  void looked(std::int64_t now_ns, bool found) noexcept {
    looked_at_.store(now_ns, std::memory_order_relaxed);
    if (found) heard_at_.store(now_ns, std::memory_order_relaxed);
    looked(found);
  }
  // Just now, or up to told_every - 1 looks ago.
  void looked(bool found) noexcept {
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (found) found_.store(found_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  // Counts what is found until the receivers may hand over again.
  bool is_kept() noexcept {
    const std::uint32_t left = kept_.load(std::memory_order_relaxed);
    if (left > 0) kept_.store(left - 1, std::memory_order_relaxed);
    return left > 0;
  }
  // A receiver: what workers have counted since the last time.
  void notice(std::int64_t now_ns) noexcept {
    const std::uint32_t looks = looks_.load(std::memory_order_relaxed);
    if (looks_noticed_.exchange(looks, std::memory_order_relaxed) != looks)
      noticed_at_.store(now_ns, std::memory_order_relaxed);
    const std::uint32_t found = found_.load(std::memory_order_relaxed);
    if (found_noticed_.exchange(found, std::memory_order_relaxed) != found)
      heard_at_.store(now_ns, std::memory_order_relaxed);
  }
  void hand_over(std::int64_t now_ns, bool to_idle) noexcept {
    to_idle_.store(to_idle, std::memory_order_relaxed);
    heard_at_.store(now_ns, std::memory_order_relaxed);
    looked_at_.store(now_ns, std::memory_order_relaxed);
    found_.store(0, std::memory_order_relaxed);
    found_noticed_.store(0, std::memory_order_relaxed);
    looks_noticed_.store(looks_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    workers_look_.store(true, std::memory_order_relaxed);
  }

  std::atomic<bool> workers_look_{false};
  std::atomic<std::int64_t> looked_at_{0}, heard_at_{-close_ns}, watch_ns_{watch_min_ns};
  std::atomic<std::uint32_t> looks_{0};  // by workers; where several do, about
  std::atomic<std::uint32_t> found_{0};  // the same, since they look
  // As the receivers have seen them last; and when they last saw another number of looks.
  std::atomic<std::uint32_t> looks_noticed_{0}, found_noticed_{0};
  std::atomic<std::int64_t> noticed_at_{0};
  std::atomic<std::uint32_t> kept_{0}, keep_{keep_min};
  std::atomic<std::uint32_t> quick_{0};  // finds of idle workers, one soon after the other
  std::atomic<std::int64_t> found_idly_at_{-quick_ns};
  std::atomic<bool> to_idle_{false};  // the receivers have handed over last
};

}  // namespace strata::cluster
