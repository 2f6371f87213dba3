// SPDX-License-Identifier: Apache-2.0
// Code that travels between simulated nodes and does nothing there: a token, and a call whose
// result somebody awaits. Made by hand, since a program's calls need stacks of their own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "strata/call.hpp"
#include "strata/detail/remote.hpp"
#include "strata/detail/worker.hpp"

namespace strata::test {

// What of either is on another node: says to `home`, if it has one, that it is done.
struct errand : detail::task {
  std::uint64_t home = 0;

  static void run(detail::task& t, detail::worker& w) {
    const auto home = detail::global_address::from_bits(static_cast<errand&>(t).home);
    abandon(t, w);
    const std::uint64_t result = 7;
    if (home.bits() != 0) detail::give_back_result(home, nullptr, &result, sizeof result);
  }
  static void abandon(detail::task& t, detail::worker& w) {
    w.frames.deallocate(&t, sizeof(errand));
  }
  static const char* name() { return "errand"; }
};

struct token_errand {
  static void pack(const detail::task&, std::uint16_t, std::byte* out) { std::memset(out, 0, 8); }
  static detail::task* unpack(detail::worker& w, const std::byte*) {
    return ::new (w.frames.allocate(sizeof(errand))) errand{{&type}};
  }
  static const detail::travelling_code code;
  static constexpr detail::wire_type wire{8, &pack, &unpack, &errand::name, &code};
  static constexpr detail::task_type type{&errand::run, nullptr, &errand::abandon, &errand::name,
                                          &wire};
};
inline const detail::travelling_code token_errand::code{wire, &detail::__ehdr_start};

// A call, at home.
struct awaited_errand : detail::task {
  bool answered = false;

  awaited_errand() noexcept : detail::task{&type} {}
  static void pack(const detail::task& t, std::uint16_t here, std::byte* out) {
    const std::uint64_t home = detail::global_address(here, &t).bits();
    std::memcpy(out, &home, sizeof home);
  }
  static detail::task* unpack(detail::worker& w, const std::byte* in) {
    auto* const e = ::new (w.frames.allocate(sizeof(errand))) errand{{&visiting}};
    std::memcpy(&e->home, in, sizeof e->home);
    return e;
  }
  static void accept(detail::task& t, const std::exception_ptr&, const std::byte*) {
    static_cast<awaited_errand&>(t).answered = true;
  }
  static void stay(detail::task&, detail::worker&) {}
  static const detail::travelling_code code;
  static constexpr detail::wire_type wire{8, &pack, &unpack, &errand::name, &code, &accept, 8};
  static constexpr detail::task_type type{&stay, nullptr, &stay, &errand::name, &wire};
  static constexpr detail::task_type visiting{&errand::run, nullptr, &errand::abandon,
                                              &errand::name};
};
inline const detail::travelling_code awaited_errand::code{wire, &detail::__ehdr_start};

}  // namespace strata::test
