// SPDX-License-Identifier: Apache-2.0
// Text that a user wrote, to values. Every function throws user_error with a message that continues
// a sentence: "<where>: <message>".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// A whole decimal number in [low, high].
std::uint64_t parse_whole(std::string_view text, std::uint64_t low, std::uint64_t high);

/// A number of bytes in [low, high]: a whole number, optionally followed by K, M or G (powers of
/// 1024; KiB, MiB, GiB too).
std::uint64_t parse_bytes(std::string_view text, std::uint64_t low, std::uint64_t high);

/// yes, no, true, false, on, off, 1 or 0.
bool parse_switch(std::string_view text);

/// "256K", "1G", "1000": the shortest exact spelling that parse_bytes reads back.
std::string bytes_to_text(std::uint64_t bytes);

/// Those of `names` that a person who typed `typed` probably meant, nearest first, at most three.
std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& names);

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace strata
