// SPDX-License-Identifier: Apache-2.0
#include "launch/build_id.hpp"

#include <fcntl.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

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

// FNV-1a: tells builds apart, and proves nothing.
class hash {
 public:
  void add(std::string_view bytes) noexcept {
    for (const char c : bytes) value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  [[nodiscard]] std::string text() const { return to_hex(std::as_bytes(std::span(&value_, 1))); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

std::string hash_of_file(const char* name) {
  const os::descriptor file(::open(name, O_RDONLY | O_CLOEXEC));
  hash all;
  std::array<char, 65536> block;
  while (true) {
    const ssize_t bytes = ::read(file.get(), block.data(), block.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0)
      throw errno_error("cannot read the running program's file " + std::string(name), errno);
    if (bytes == 0) return all.text();
    all.add({block.data(), static_cast<std::size_t>(bytes)});
  }
}

// An executable or a library that is loaded.
struct module {
  std::string file;
  std::optional<std::string> id;

  [[nodiscard]] std::string text() const { return id ? *id : hash_of_file(file.c_str()); }
};

std::optional<std::string> build_id_of(const dl_phdr_info& loaded) {
  for (int i = 0; i < loaded.dlpi_phnum; ++i) {
    const auto& segment = loaded.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const begin =
        reinterpret_cast<const std::byte*>(loaded.dlpi_addr + segment.p_vaddr);
    if (auto id = build_id_in_notes({begin, segment.p_memsz}, segment.p_align)) return id;
  }
  return std::nullopt;
}

bool holds(const dl_phdr_info& loaded, const void* address) {
  for (int i = 0; i < loaded.dlpi_phnum; ++i) {
    const auto& segment = loaded.dlpi_phdr[i];
    const std::uintptr_t into =
        reinterpret_cast<std::uintptr_t>(address) - (loaded.dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_LOAD && into < segment.p_memsz) return true;
  }
  return false;
}

struct search {
  std::span<const void* const> of_libraries;
  std::vector<module> found{};  // the executable first
};

// dl_iterate_phdr begins with the executable itself; returning 0 goes on.
int visit(dl_phdr_info* loaded, std::size_t, void* result) {
  auto& s = *static_cast<search*>(result);
  if (s.found.empty()) {
    s.found.push_back({"/proc/self/exe", build_id_of(*loaded)});
  } else if (std::any_of(s.of_libraries.begin(), s.of_libraries.end(),
                         [&](const void* address) { return holds(*loaded, address); })) {
    s.found.push_back({loaded->dlpi_name, build_id_of(*loaded)});
  }
  return 0;
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

std::string build_id(std::span<const void* const> of_libraries) {
  search s{of_libraries};
  dl_iterate_phdr(&visit, &s);
  const std::string program = s.found.at(0).text();
  if (s.found.size() == 1) return program;
  // In whatever order they were loaded.
  std::vector<std::string> libraries;
  for (std::size_t i = 1; i < s.found.size(); ++i) libraries.push_back(s.found[i].text());
  std::sort(libraries.begin(), libraries.end());
  hash all;
  // Of an id that is longer than a linker's usual one a connection would not compare the end.
  constexpr std::size_t shown_max = 40;
  if (program.size() > shown_max) all.add(program + ' ');
  for (const std::string& one : libraries) all.add(one + ' ');
  return program.substr(0, shown_max) + '-' + all.text();
}

}  // namespace strata::launch
