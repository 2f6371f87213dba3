// SPDX-License-Identifier: Apache-2.0
#include "strata/parallel.hpp"

#include <string>

#include "strata/error.hpp"

namespace strata::detail {
namespace {

[[noreturn]] void refuse(const std::string& last) {
  throw misuse_error("a range ends at " + last +
                     ", which is no index of the type of its first one; begin it with a number of "
                     "a type that has both, as with std::size_t{0}");
}

}  // namespace

void refuse_range_end(std::intmax_t last) { refuse(std::to_string(last)); }
void refuse_range_end(std::uintmax_t last) { refuse(std::to_string(last)); }

}  // namespace strata::detail
