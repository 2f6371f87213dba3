// SPDX-License-Identifier: Apache-2.0
#include "context/frame_description.hpp"

#include <array>
#include <cstring>

namespace strata::detail {
namespace {

std::uintptr_t address_of(const std::byte* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p);
}

// The part of `image` from `address` on; empty if that is elsewhere.
std::span<const std::byte> image_from(std::span<const std::byte> image,
                                      std::uintptr_t address) noexcept {
  const std::uintptr_t offset = address - address_of(image.data());
  return offset < image.size() ? image.subspan(offset) : std::span<const std::byte>();
}

// The address of the last entry that begins at or below `pc`; 0: there is none, or the index is of
// a kind that linkers do not make.
std::uintptr_t entry_for(std::span<const std::byte> index, std::uintptr_t pc) noexcept {
  dwarf_reader head(index);
  const auto version = head.fixed<std::uint8_t>();
  const auto frame_encoding = head.fixed<std::uint8_t>();
  const auto count_encoding = head.fixed<std::uint8_t>();
  const auto table_encoding = head.fixed<std::uint8_t>();
  constexpr unsigned sorted_table = 0x3b;  // 32-bit offsets from the begin of the index
  if (version != 1 || table_encoding != sorted_table || (count_encoding & 0x70U) != 0) return 0;
  (void)head.pointer(frame_encoding);
  const std::uint64_t count = head.pointer(count_encoding);

  struct pair {
    std::int32_t code, entry;
  };
  if (!head.good() || count == 0 || count > index.size() / sizeof(pair)) return 0;
  const dwarf_reader table = head.part(count * sizeof(pair));
  if (!head.good()) return 0;
  const auto absolute = [&](std::int32_t offset) {
    return address_of(index.data()) + static_cast<std::uintptr_t>(std::int64_t{offset});
  };
  const auto at = [&](std::uint64_t i) {
    pair p;
    std::memcpy(&p, table.at() + i * sizeof p, sizeof p);
    return p;
  };
  if (absolute(at(0).code) > pc) return 0;
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (absolute(at(middle).code) <= pc ? low : high) = middle;
  }
  return absolute(at(low).entry);
}

// What follows an entry's length; not good where there is no entry, or one of the 64-bit format.
dwarf_reader entry_at(std::span<const std::byte> image, std::uintptr_t address) noexcept {
  dwarf_reader head(image_from(image, address));
  const auto bytes = head.fixed<std::uint32_t>();
  return head.part(bytes == 0xffff'ffffU ? ~std::uint64_t{0} : bytes);
}

struct common_entry {
  unsigned pointer_encoding = 0;
  bool sized = false;  // entries say how long their augmentation is
};

// Reads a "common information entry" into what `d` has of it.
std::optional<common_entry> read_common(dwarf_reader common, frame_description& d) noexcept {
  if (common.fixed<std::uint32_t>() != 0) return std::nullopt;
  const auto version = common.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return std::nullopt;
  std::array<char, 9> augmentation{};
  std::size_t length = 0;
  while ((augmentation[length] = static_cast<char>(common.fixed<std::uint8_t>())) != 0) {
    if (++length == augmentation.size()) return std::nullopt;
  }
  d.code_align = common.uleb();
  d.data_align = common.sleb();
  d.return_column = version == 1 ? common.fixed<std::uint8_t>() : common.uleb();
  common_entry result;
  result.sized = augmentation[0] == 'z';
  if (result.sized) {
    dwarf_reader data = common.part(common.uleb());
    for (std::size_t i = 1; i < length; ++i) {
      switch (augmentation[i]) {
        case 'R':
          result.pointer_encoding = data.fixed<std::uint8_t>();
          break;
        case 'L':
          (void)data.fixed<std::uint8_t>();
          break;
        case 'P':
          (void)data.pointer(data.fixed<std::uint8_t>());
          break;
        case 'S':
          d.signal = true;
          break;
        case 'B':
        case 'G':
          break;
        default:
          return std::nullopt;
      }
    }
    if (!data.good()) return std::nullopt;
  } else if (length != 0) {
    return std::nullopt;
  }
  d.common = common;
  return common.good() ? std::optional(result) : std::nullopt;
}

}  // namespace

std::optional<frame_description> find_frame_description(std::span<const std::byte> image,
                                                        std::span<const std::byte> index,
                                                        std::uintptr_t pc) noexcept {
  dwarf_reader entry = entry_at(image, entry_for(index, pc));
  const std::uintptr_t here = address_of(entry.at());
  const auto back = entry.fixed<std::uint32_t>();  // from `here` to what it has in common; 0: is it
  if (!entry.good() || back == 0) return std::nullopt;
  frame_description d;
  const auto common = read_common(entry_at(image, here - back), d);
  if (!common) return std::nullopt;
  d.begin = entry.pointer(common->pointer_encoding);
  d.end = d.begin + entry.pointer(common->pointer_encoding & 0x0fU);
  if (common->sized) (void)entry.part(entry.uleb());
  d.own = entry;
  if (!entry.good() || pc < d.begin || pc >= d.end) return std::nullopt;
  return d;
}

}  // namespace strata::detail
