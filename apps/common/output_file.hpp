// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

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
// A file that replaces another has its permissions, and its owner and group as far as the user may
// give them (without the group, nothing for groups); a symbolic link stays one, and the file that
// it leads to is replaced, or made.
//
// What is open already is written directly, where its descriptor stands: a device or pipe, what a
// path names as a descriptor of this process (/dev/stdout, /dev/fd/3), and the file in which
// standard output or standard error ends, which would lose what the program says there. What is
// written there before an error stays.
//
// Every failure (no such folder, no permission, disk full) throws strata::user_error naming the
// file. Not thread-safe.
class output_file {
 public:
  // Creates the file now, so that a path that cannot be written is reported before hours of work.
  explicit output_file(std::string path);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view text);

  // Flushes to the disk and gives the file its name.
  void commit();
  // Only gives it its name: for one of many files, which whoever makes them flushes together before
  // anything says that they are there.
  void commit_unflushed();

 private:
  [[noreturn]] void fail(const char* doing);
  void write_through(int descriptor);
  void create(mode_t mode);
  void take_rights_of(const struct stat& older) noexcept;
  void write_pending();
  template <class Take>
  [[nodiscard]] bool take_name(const Take& take);
  void name_it();

  std::string path_;
  std::string target_;     // where that leads
  std::string before_;     // what the names that the file has until then begin with
  std::string temporary_;  // empty: no such name yet
  bool in_place_ = false;
  int fd_ = -1;
  std::string pending_;
};

}  // namespace apps
