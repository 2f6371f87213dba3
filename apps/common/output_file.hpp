// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace apps {

// A file that appears whole or not at all: written under a temporary name in the same folder,
// renamed by commit(). Destroying it without commit() removes what was written, so an error
// half-way leaves no partial output and an older file of that name untouched.
//
// Every failure (no such folder, no permission, disk full) throws strata::user_error naming the
// file. Not thread-safe.
class output_file {
 public:
  // Creates the temporary file now, so that a path that cannot be written is reported before hours
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

  std::string path_;
  std::string temporary_;  // empty: nothing to rename
  int fd_ = -1;
  std::string pending_;
};

}  // namespace apps
