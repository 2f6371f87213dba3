// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace strata::launch {

// What tells two builds of the running executable apart, in hexadecimal: its GNU build id, or a
// hash of the file when it was linked without one. Behind a hyphen follows a hash of the same of
// the shared libraries that these addresses lie in, if they do. Throws strata::error when one of
// them cannot be read.
std::string build_id(std::span<const void* const> of_libraries = {});

// The build id in the notes of a loaded executable (the contents of a PT_NOTE segment).
std::optional<std::string> build_id_in_notes(std::span<const std::byte> notes,
                                             std::size_t alignment);

}  // namespace strata::launch
