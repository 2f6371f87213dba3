// SPDX-License-Identifier: Apache-2.0
// A library that a program loads: several builds of it, of which one has no code that travels.
#include "strata/detail/remote.hpp"

#if TRAVELLING_BUILD != 0
namespace {

const char* name() { return "of a library"; }
constinit const strata::detail::wire_type wire{0, nullptr, nullptr, &name, nullptr};
const strata::detail::travelling_code code{wire, &strata::detail::__ehdr_start};

}  // namespace
#endif

extern "C" int build_of_library() { return TRAVELLING_BUILD; }
