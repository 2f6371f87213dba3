// SPDX-License-Identifier: Apache-2.0
// Reads plain and gzip files; apart from the parser so that the parser can be fuzzed without zlib.
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <strata/error.hpp>

#include "apps/align/sequence.hpp"

namespace align {
namespace {

struct close_gz {
  void operator()(gzFile_s* f) const { gzclose(f); }
};

// What has no record in front has none. See parse_fasta().
bool cannot_be_fasta(std::string_view text) {
  text = without_byte_order_mark(text);
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] != '>';
}

// All of it, or of a file that is no FASTA enough to be told so.
std::string read_all(const std::string& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, close_gz> file(gzopen(path.c_str(), "rb"));
  if (!file) {
    throw strata::user_error(path + ": cannot open the file: " +
                             std::strerror(errno != 0 ? errno : ENOMEM) + "; check the name");
  }
  gzbuffer(file.get(), 1 << 18);
  std::string text;
  std::string chunk(1 << 20, '\0');
  for (;;) {
    errno = 0;
    const int got = gzread(file.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
    const bool is_first = text.empty();
    if (got > 0) text.append(chunk, 0, static_cast<std::size_t>(got));
    // The rest may have no end.
    if (is_first && cannot_be_fasta(text)) return text;
    if (got == static_cast<int>(chunk.size())) continue;
    int code = Z_OK;
    gzerror(file.get(), &code);
    // A gzip file cut short is Z_BUF_ERROR, sometimes after some bytes were delivered.
    if (code == Z_BUF_ERROR)
      throw strata::user_error(path + ": the gzip data ends too early; fetch the file again");
    if (code == Z_ERRNO || (got < 0 && code == Z_OK)) {
      throw strata::user_error(
          path + ": cannot read the file: " + std::strerror(errno != 0 ? errno : EIO));
    }
    if (got < 0)
      throw strata::user_error(path + ": the gzip data is damaged; fetch the file again");
    if (got == 0) return text;
  }
}

}  // namespace

sequence read_fasta(const std::string& path, std::string_view record) {
  return parse_fasta(read_all(path), path, record);
}

}  // namespace align
