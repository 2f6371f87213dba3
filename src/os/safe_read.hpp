// SPDX-License-Identifier: Apache-2.0
// Reading memory that somebody may be changing or giving back meanwhile.
#pragma once
#include <array>
#include <cstddef>
#include <string>

namespace strata::os {

/// Copies `bytes` from `from`, like memcpy(), but is false where the memory cannot be read, instead
/// of a fault. The copy is made by the kernel: for the language, and for the sanitizers, nobody has
/// looked. What others write meanwhile may be copied in part. About a microsecond.
bool safe_read(void* to, const void* from, std::size_t bytes) noexcept;

/// A copy of an object that may not even be there.
template <class T>
struct copied {
  alignas(T) std::array<std::byte, sizeof(T)> bytes{};
  bool read(const void* from) noexcept { return safe_read(bytes.data(), from, sizeof(T)); }
  const T& get() const noexcept { return *reinterpret_cast<const T*>(bytes.data()); }
};

/// The text that begins at `from`, up to its end, or so many characters of it, or what of it can be
/// read. A microsecond for each 16 characters.
std::string safe_text(const char* from, std::size_t length_max);

}  // namespace strata::os
