// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/pthread.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "base/leading_flags.hpp"
#include "strata/error.hpp"
#include "strata/options.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* usage =
    "Usage: strata pthread [--strata-SETTING VALUE ...] PROGRAM [ARGUMENT ...]\n"
    "Runs a program that is already built with its POSIX threads on strata's workers: it is "
    "started\n"
    "with libstrata_pthread.so preloaded. Settings are those of the STRATA_* variables; programs\n"
    "that it starts itself run as always. What works and what does not: docs/pthread.md\n";

#if defined(__x86_64__)
constexpr Elf64_Half this_machine = EM_X86_64;
#else
constexpr Elf64_Half this_machine = EM_AARCH64;
#endif

// A program that would get rights which the caller does not have; root gains none by capabilities.
void check_rights(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return;
  if (((about.st_mode & S_ISUID) != 0 && about.st_uid != ::geteuid()) ||
      ((about.st_mode & S_ISGID) != 0 && about.st_gid != ::getegid()))
    throw user_error(path + " is setuid or setgid: the system preloads nothing into such programs");
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    throw user_error(path +
                     " has capabilities of its own: the system preloads nothing into such "
                     "programs; run a copy, which has none");
}

// Why it cannot be preloaded is found out here: the loader would say nothing, or too little.
void check_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw user_error("cannot read " + path + ": " + std::strerror(errno));
  Elf64_Ehdr head{};
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  if (std::string_view(reinterpret_cast<const char*>(&head), 2) == "#!")
    throw user_error(path + " is a script: name the program that it runs");
  if (!file || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    throw user_error(path + " is not a program of this system (no ELF file)");
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != this_machine)
    throw user_error(path + " is a program for another processor");
  bool has_loader = false;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(head.e_phoff + std::size_t{i} * head.e_phentsize));
    file.read(reinterpret_cast<char*>(&part), sizeof part);
    if (file && part.p_type == PT_INTERP) has_loader = true;
  }
  if (!has_loader)
    throw user_error(path +
                     " is statically linked, so nothing can be preloaded; build it against "
                     "strata/shim instead");
  check_rights(path);
}

std::string find_library() {
  constexpr const char* name = "libstrata_pthread.so";
  const fs::path prefix = fs::path(own_path()).parent_path().parent_path();
  for (const fs::path& folder : {prefix / STRATA_LIBRARY_FOLDER, prefix / "lib"}) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  throw error(std::string("there is no ") + name + " in " +
              (prefix / STRATA_LIBRARY_FOLDER).string() + ", where it is installed with strata");
}

}  // namespace

int run_pthread(int argc, char** argv, const inherited_state& inherited) {
  // As variables, which is how the library hears of them.
  const leading_flags flags =
      read_leading_flags(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  for (const auto& [name, value] : flags.variables) ::setenv(name.c_str(), value.c_str(), 1);
  int first = 1 + static_cast<int>(flags.words);
  const std::string_view word = first < argc ? argv[first] : "";
  if (word == "--help" || word == "-h") {
    std::fputs(usage, stdout);
    return EXIT_SUCCESS;
  }
  if (word == "--") {
    ++first;
  } else if (word.starts_with('-')) {
    throw user_error(std::string(word) + " is not known here; strata pthread --help says more");
  }
  if (first >= argc) throw user_error("which program? strata pthread --help says more");
  // A bad setting in variables or a file is told now, not by the program.
  {
    std::array<char, 7> name{"strata"};
    std::array<char*, 2> none{name.data(), nullptr};
    int count = 1;
    (void)options::parse(count, none.data());
  }
  const std::string program = find_program(argv[first]);
  check_program(program);
  std::string preload = find_library();
  if (preload.find_first_of(": ") != std::string::npos)
    throw user_error(
        "the path of " + preload +
        " has a space or a colon, which LD_PRELOAD cannot hold; install strata where it has none");
  if (const char* others = std::getenv("LD_PRELOAD"); others != nullptr && *others != '\0')
    preload += std::string(":") + others;
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  inherited.restore();
  ::execv(program.c_str(), argv + first);
  throw error("cannot run " + program + ": " + std::strerror(errno));
}

}  // namespace strata::launcher
