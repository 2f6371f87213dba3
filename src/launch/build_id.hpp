// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace strata::launch {

// What tells two builds of the running executable apart, in hexadecimal: its GNU build id, or a
// hash of the file when it was linked without one. Throws strata::error when neither can be read.
std::string build_id();

// The build id in the notes of a loaded executable (the contents of a PT_NOTE segment).
std::optional<std::string> build_id_in_notes(std::span<const std::byte> notes,
                                             std::size_t alignment);

}  // namespace strata::launch
