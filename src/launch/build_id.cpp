// SPDX-License-Identifier: Apache-2.0
#include "launch/build_id.hpp"

#include <fcntl.h>
#include <link.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/errno_error.hpp"
#include "os/descriptor.hpp"

namespace strata::launch {

namespace {

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    const auto value = std::to_integer<unsigned>(b);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

// dl_iterate_phdr begins with the executable itself; returning 1 ends the walk after it.
int visit_executable(dl_phdr_info* info, std::size_t, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const begin = reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr);
    if (auto id = build_id_in_notes({begin, segment.p_memsz}, segment.p_align)) {
      *static_cast<std::optional<std::string>*>(result) = std::move(id);
      break;
    }
  }
  return 1;
}

// FNV-1a: tells builds apart, and proves nothing.
std::string hash_of_executable() {
  const os::descriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::array<unsigned char, 65536> block;
  while (true) {
    const ssize_t bytes = ::read(file.get(), block.data(), block.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) throw errno_error("cannot read the running program's file", errno);
    if (bytes == 0) break;
    for (ssize_t i = 0; i < bytes; ++i) {
      hash = (hash ^ block[static_cast<std::size_t>(i)]) * 0x100000001b3U;
    }
  }
  return to_hex(std::as_bytes(std::span(&hash, 1)));
}

}  // namespace

std::optional<std::string> build_id_in_notes(std::span<const std::byte> notes,
                                             std::size_t alignment) {
  // Notes are aligned to 4 bytes, or to 8 where the segment says so.
  const std::size_t step = alignment == 8 ? 8 : 4;
  constexpr std::string_view owner("GNU", 4);  // with its zero
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::uint64_t name_at = sizeof head;
    const std::uint64_t data_at = (name_at + head.n_namesz + step - 1) / step * step;
    const std::uint64_t end = data_at + head.n_descsz;
    if (end > notes.size()) return std::nullopt;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == owner.size() && head.n_descsz != 0 &&
        std::memcmp(notes.data() + name_at, owner.data(), owner.size()) == 0) {
      return to_hex(notes.subspan(data_at, head.n_descsz));
    }
    notes = notes.subspan(std::min<std::uint64_t>((end + step - 1) / step * step, notes.size()));
  }
  return std::nullopt;
}

std::string build_id() {
  std::optional<std::string> id;
  dl_iterate_phdr(&visit_executable, &id);
  return id ? *id : hash_of_executable();
}

}  // namespace strata::launch
