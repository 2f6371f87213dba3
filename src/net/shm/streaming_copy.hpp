// SPDX-License-Identifier: Apache-2.0
// Copies into memory that another core reads next, past the caches of this one. An ordinary store
// first fetches the line that it changes, and here the other core holds that: it has read what was
// there before. Where cores share a cache that is quick. Where they do not, a line takes a message
// there and back, and a store without a fetch is several times as fast, though the other core then
// reads from memory. Which one it is, the ring's writer measures. (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 1, 10.4.6.2, "Caching of temporal versus non-temporal data".)
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace strata::net::shm {

#if defined(__x86_64__)

inline constexpr bool has_streaming_copy = true;

// Whole lines; their ends, which others may share, by ordinary stores. What is stored after this
// is seen after what was copied.
inline void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64;
  std::size_t before = -reinterpret_cast<std::uintptr_t>(to) % line;
  if (before > bytes) before = bytes;
  std::memcpy(to, from, before);
  std::size_t i = before;
  for (; i + line <= bytes; i += line) {
    const auto* const s = reinterpret_cast<const __m128i*>(from + i);
    auto* const d = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
    const __m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);
    _mm_stream_si128(d, a);
    _mm_stream_si128(d + 1, b);
    _mm_stream_si128(d + 2, c);
    _mm_stream_si128(d + 3, e);
  }
  std::memcpy(to + i, from + i, bytes - i);
  // These stores keep no order of their own.
  _mm_sfence();
}

#else

inline constexpr bool has_streaming_copy = false;

inline void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace strata::net::shm
