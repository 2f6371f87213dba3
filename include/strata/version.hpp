// SPDX-License-Identifier: Apache-2.0
// The version of these headers. The build reads it from here, so it is written once.
#pragma once

#define STRATA_VERSION_MAJOR 0
#define STRATA_VERSION_MINOR 1
#define STRATA_VERSION_PATCH 0
#define STRATA_VERSION_STRING "0.1.0"

namespace strata {

/// The version of the library that was linked, as "major.minor.patch". It differs from
/// STRATA_VERSION_STRING only when the headers and the library come from different releases. Never
/// blocks, never fails; any thread.
const char* version() noexcept;

}  // namespace strata
