// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/bytes_at_once.hpp"

#include <cstdint>
#include <utility>

namespace strata::detail {
namespace {

thread_local std::size_t most_at_once = SIZE_MAX;

}  // namespace

bytes_at_once::bytes_at_once(std::size_t most) noexcept
    : outer_(std::exchange(most_at_once, most)) {}
bytes_at_once::~bytes_at_once() { most_at_once = outer_; }

std::size_t bytes_at_once::most() noexcept { return most_at_once; }

}  // namespace strata::detail
