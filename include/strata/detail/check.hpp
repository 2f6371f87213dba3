// SPDX-License-Identifier: Apache-2.0
// STRATA_CHECK and STRATA_DCHECK: invariants of the runtime itself. A failed check is our bug (or
// memory corruption), so it prints what it knows and aborts; errors that a caller can act upon are
// exceptions instead (strata/error.hpp).
//
//   STRATA_CHECK(top <= bottom, top, bottom);
//   -> src/sync/spsc_queue.hpp:81: STRATA_CHECK(top <= bottom) failed
//        top, bottom = 7, 3
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

namespace strata::detail {

/// Text in a fixed buffer: formatting must work when the heap is the thing that is broken. What
/// does not fit is cut.
class check_text {
 public:
  void add(std::string_view text) noexcept;
  void add(unsigned long long value) noexcept;
  void add(long long value) noexcept;
  void add(double value) noexcept;
  void add(const void* value) noexcept;
  [[nodiscard]] std::string_view view() const noexcept { return {text_, size_}; }

 private:
  char text_[512];
  std::size_t size_ = 0;
};

template <class T>
void add_operand(check_text& out, const T& value) noexcept {
  using D = std::decay_t<T>;
  if (out.view().size() != 0) out.add(std::string_view(", "));
  if constexpr (std::is_same_v<D, bool>) {
    out.add(std::string_view(value ? "true" : "false"));
  } else if constexpr (std::is_same_v<D, char>) {
    out.add(std::string_view(&value, 1));
  } else if constexpr (std::is_floating_point_v<D>) {
    out.add(static_cast<double>(value));
  } else if constexpr (std::is_integral_v<D> && std::is_signed_v<D>) {
    out.add(static_cast<long long>(value));
  } else if constexpr (std::is_integral_v<D>) {
    out.add(static_cast<unsigned long long>(value));
  } else if constexpr (std::is_enum_v<D>) {
    out.add(static_cast<long long>(value));
  } else if constexpr (std::is_null_pointer_v<D>) {
    out.add(std::string_view("null"));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out.add(std::string_view(value));
  } else {
    static_assert(std::is_pointer_v<D>,
                  "a checked operand is a number, an enum, a string or a pointer");
    out.add(static_cast<const void*>(value));
  }
}

/// Prints one failed check on stderr and aborts. `names` and `values` may be empty.
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const char* names, const check_text& values) noexcept;

// Cold and out of line, so that a check costs its caller one comparison and one branch not taken.
template <class... Values>
[[noreturn, gnu::cold, gnu::noinline]] void check_failed_with(const char* file, int line,
                                                              const char* expression,
                                                              const char* names,
                                                              const Values&... values) noexcept {
  check_text text;
  (add_operand(text, values), ...);
  check_failed(file, line, expression, names, text);
}

// Names what a disabled check names, so that a variable made for it does not become "unused".
template <class... Values>
int not_evaluated(const Values&...);

}  // namespace strata::detail

// Always on, in every build. The values after the condition are evaluated only when it is false.
#define STRATA_CHECK(condition, ...)                                         \
  (__builtin_expect(static_cast<bool>(condition), 1)                         \
       ? static_cast<void>(0)                                                \
       : ::strata::detail::check_failed_with(__FILE__, __LINE__, #condition, \
                                             #__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__))

// For hot paths: compiled in only with STRATA_DEBUG_CHECKS (Debug and sanitizer builds). Otherwise
// nothing is evaluated, and the optimiser is told nothing. Never write an effect into it.
#if defined(STRATA_DEBUG_CHECKS)
#define STRATA_DCHECK(condition, ...) STRATA_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#else
#define STRATA_DCHECK(condition, ...) \
  static_cast<void>(sizeof(           \
      ::strata::detail::not_evaluated(static_cast<bool>(condition) __VA_OPT__(, ) __VA_ARGS__)))
#endif
