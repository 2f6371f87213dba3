#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <queue>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>
#include <vector>
constexpr unsigned vertices = 20'000, edges_each = 4, far = 1'000'000;

struct edge {
  unsigned to, length;
};
edge edge_of(unsigned v, unsigned which) {
  unsigned long x = (v * 8UL + which + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
  x ^= x >> 32;
  return {static_cast<unsigned>(x % vertices), static_cast<unsigned>(x >> 50) % 100 + 1};
}

struct place {
  unsigned distance, vertex;
  friend bool operator<(place a, place b) { return a.distance > b.distance; }  // the nearest first
};

// What is still to be looked at. Used up when it is empty and nobody is busy: only who is busy adds.
class open_places {
 public:
  void add(place p) {
    const std::lock_guard lock(mutex_);
    places_.push(p);
    changed_.notify_one();
  }
  // Waits for one, if need be. Nothing: it is used up. Whoever gets one calls done() afterwards.
  std::optional<place> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !places_.empty() || busy_ == 0; });
    if (places_.empty()) return std::nullopt;
    const place p = places_.top();
    places_.pop();
    ++busy_;
    return p;
  }
  void done() {
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0 && places_.empty()) changed_.notify_all();
  }

 private:
  strata::mutex mutex_;
  strata::condition_variable changed_;
  std::priority_queue<place> places_;
  int busy_ = 0;
};

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([&] {
    std::vector<std::atomic<unsigned>> distance(vertices);
    for (std::atomic<unsigned>& d : distance) d = far;
    open_places open;
    distance[0] = 0;
    open.add({0, 0});
    const auto work = [&] {
      while (const auto p = open.take()) {
        for (unsigned e = 0; p->distance == distance[p->vertex] && e < edges_each; ++e) {
          const edge there = edge_of(p->vertex, e);
          const unsigned by_us = p->distance + there.length;
          unsigned known = distance[there.to];
          while (by_us < known && !distance[there.to].compare_exchange_weak(known, by_us)) {
          }
          if (by_us < known) open.add({by_us, there.to});
        }
        open.done();
      }
    };
    std::vector<strata::thread> threads;
    for (unsigned i = 0; i < runtime.workers(); ++i) threads.emplace_back(work);
    for (strata::thread& t : threads) t.join();
    unsigned reached = 0, farthest = 0;
    for (const std::atomic<unsigned>& d : distance) {
      if (d == far) continue;
      ++reached;
      farthest = std::max<unsigned>(farthest, d);
    }
    std::printf("%u of %u vertices, the farthest at %u\n", reached, vertices, farthest);
  });
}
