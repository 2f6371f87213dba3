// SPDX-License-Identifier: Apache-2.0
// Reads numbers from tables in DWARF's encodings (DWARF 5, section 7.6) and pointers in those of
// .eh_frame (Linux Standard Base 5.0, Core, section 10.5), and never a byte past the table's end:
// from the first that would be, everything reads as zero and good() is false.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace strata::detail {

// A value; copies read on from the same place.
class dwarf_reader {
 public:
  dwarf_reader() = default;
  explicit dwarf_reader(std::span<const std::byte> table) noexcept : rest_(table) {}

  // False once something did not fit or is in no known encoding.
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool more() const noexcept { return good_ && !rest_.empty(); }
  // Where the next byte is.
  [[nodiscard]] const std::byte* at() const noexcept { return rest_.data(); }

  // The next `bytes` bytes, as a table of their own.
  dwarf_reader part(std::uint64_t bytes) noexcept {
    if (bytes > rest_.size()) fail();
    if (!good_) return *this;
    const dwarf_reader taken(rest_.first(bytes));
    rest_ = rest_.subspan(bytes);
    return taken;
  }

  // A number of fixed size in the machine's byte order.
  template <class T>
  T fixed() noexcept {
    T v{};
    if (const dwarf_reader taken = part(sizeof v); good_) std::memcpy(&v, taken.at(), sizeof v);
    return v;
  }

  // LEB128: seven bits a byte, the lowest first. Bits above the 64th are lost.
  std::uint64_t uleb() noexcept { return leb().value; }
  std::int64_t sleb() noexcept {
    auto [value, bits] = leb();
    if (bits < 64 && (value >> (bits - 1) & 1U) != 0) value |= ~std::uint64_t{0} << bits;
    return static_cast<std::int64_t>(value);
  }

  // A pointer: the low four bits of `encoding` say how it is written, the next three what to add:
  // we know nothing and the pointer's own address, all that modules of today use. What the highest
  // bit says, that the pointer's target is another, is not followed.
  std::uintptr_t pointer(unsigned encoding) noexcept {
    const auto here = reinterpret_cast<std::uintptr_t>(at());
    const unsigned base = encoding & 0x70U;
    if (base != 0 && base != 0x10) fail();
    return number(encoding & 0x0fU) + (base == 0 ? 0 : here);
  }

 private:
  struct leb_number {
    std::uint64_t value;
    unsigned bits;
  };
  leb_number leb() noexcept {
    leb_number n{0, 0};
    std::uint8_t b = 0x80;
    while (n.bits < 64 && (b & 0x80U) != 0) {
      b = fixed<std::uint8_t>();
      n.value |= std::uint64_t{b & 0x7fU} << n.bits;
      n.bits += 7;
    }
    return n;
  }
  std::uintptr_t number(unsigned format) noexcept {
    switch (format) {
      case 0x0:
      case 0x4:
      case 0xc:
        return fixed<std::uint64_t>();
      case 0x2:
        return fixed<std::uint16_t>();
      case 0x3:
        return fixed<std::uint32_t>();
      case 0xa:
        return static_cast<std::uintptr_t>(std::int64_t{fixed<std::int16_t>()});
      case 0xb:
        return static_cast<std::uintptr_t>(std::int64_t{fixed<std::int32_t>()});
      default:
        fail();
        return 0;
    }
  }
  void fail() noexcept {
    good_ = false;
    rest_ = {};
  }

  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace strata::detail
