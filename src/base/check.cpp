// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/check.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace strata::detail {

void check_text::add(std::string_view text) noexcept {
  const std::size_t room = std::min(text.size(), sizeof text_ - size_);
  std::memcpy(text_ + size_, text.data(), room);
  size_ += room;
}

namespace {

template <class T>
void add_printed(check_text& out, const char* format, T value) noexcept {
  char digits[40];
  const int length = std::snprintf(digits, sizeof digits, format, value);
  if (length > 0) out.add(std::string_view(digits, static_cast<std::size_t>(length)));
}

}  // namespace

void check_text::add(unsigned long long value) noexcept { add_printed(*this, "%llu", value); }
void check_text::add(long long value) noexcept { add_printed(*this, "%lld", value); }
void check_text::add(double value) noexcept { add_printed(*this, "%g", value); }
void check_text::add(const void* value) noexcept { add_printed(*this, "%p", value); }

void check_failed(const char* file, int line, const char* expression, const char* names,
                  const check_text& values) noexcept {
  // One write: lines of several dying threads do not mix, and no lock of stdio is needed.
  char message[2048];
  const int length =
      values.view().empty()
          ? std::snprintf(message, sizeof message, "%s:%d: STRATA_CHECK(%s) failed\n", file, line,
                          expression)
          : std::snprintf(message, sizeof message, "%s:%d: STRATA_CHECK(%s) failed\n  %s = %.*s\n",
                          file, line, expression, names, static_cast<int>(values.view().size()),
                          values.view().data());
  if (length > 0) {
    const auto size = std::min(static_cast<std::size_t>(length), sizeof message - 1);
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message, size);
  }
  std::abort();
}

}  // namespace strata::detail
