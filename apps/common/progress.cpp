// SPDX-License-Identifier: Apache-2.0
#include "apps/common/progress.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace apps {
namespace {
constexpr std::int64_t first_draw_ns = 1'000'000'000;
constexpr std::int64_t draw_every_ns = 100'000'000;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace

std::string duration_words(double seconds) {
  char text[32];
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%lld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole % 3600 / 60);
  }
  return text;
}

progress::progress(std::string label, std::uint64_t total)
    : label_(std::move(label)),
      total_(total),
      visible_(total > 0 && ::isatty(STDERR_FILENO) == 1),
      start_ns_(now_ns()),
      next_draw_ns_(start_ns_ + first_draw_ns) {}

progress::~progress() {
  if (drawn_.load(std::memory_order_relaxed)) std::fputs("\r\x1b[K", stderr);
}

void progress::add(std::uint64_t done_now) noexcept {
  if (!visible_) return;
  const std::uint64_t done = done_.fetch_add(done_now, std::memory_order_relaxed) + done_now;
  const std::int64_t now = now_ns();
  std::int64_t due = next_draw_ns_.load(std::memory_order_relaxed);
  if (now < due) return;
  // Only the caller that moves the deadline draws; the losers go back to work.
  if (!next_draw_ns_.compare_exchange_strong(due, now + draw_every_ns, std::memory_order_relaxed))
    return;
  draw(done, now);
}

void progress::draw(std::uint64_t done, std::int64_t now) noexcept {
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  if (fraction <= 0 || fraction > 1) return;
  const double elapsed = static_cast<double>(now - start_ns_) * 1e-9;
  const std::string left = duration_words(elapsed * (1 - fraction) / fraction);
  drawn_.store(true, std::memory_order_relaxed);
  std::fprintf(stderr, "\r%s  %3.0f%%  %s left\x1b[K", label_.c_str(), 100 * fraction,
               left.c_str());
}

}  // namespace apps
