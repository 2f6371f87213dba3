// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace apps {

// The name that a file is to get, where `name` is one that an output_file gives it for the time
// before: a program that was killed may leave it behind. Otherwise `name` itself.
[[nodiscard]] std::string_view name_to_be(std::string_view name);

// A file that appears whole or not at all: it is written without a name, or where the file system
// has no such files under a temporary one in the same folder, and gets its name by commit().
// Without commit() nothing is left of it, so an error half-way leaves no partial output and an
// older file of that name untouched; without a name that also holds when a signal ends the program.
//
// Every failure (no such folder, no permission, disk full) throws strata::user_error naming the
// file. Not thread-safe.
class output_file {
 public:
  // Creates the file now, so that a path that cannot be written is reported before hours
  // of work. A path that names a device or pipe (/dev/stdout) is written directly.
  explicit output_file(std::string path);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view text);

  // Flushes to the disk and gives the file its name.
  void commit();

 private:
  [[noreturn]] void fail(const char* doing);
  template <class Take>
  [[nodiscard]] bool take_name(const Take& take);
  void name_it();

  std::string path_;
  std::string temporary_;  // empty: no such name yet
  bool in_place_ = false;  // a device
  int fd_ = -1;
  std::string pending_;
};

}  // namespace apps
