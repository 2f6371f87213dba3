// SPDX-License-Identifier: Apache-2.0
// libFuzzer harness of the FASTA parser. Build with clang and -DSTRATA_FUZZ=ON, then:
// bin/fasta_fuzz -max_len=4096 -max_total_time=60
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <strata/error.hpp>
#include <string_view>

#include "apps/align/sequence.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const align::sequence s = align::parse_fasta(text, "fuzz");
    if (s.codes.empty() || s.codes.size() != s.letters.size() || s.records_in_file == 0)
      std::abort();
    if (align::reverse_complement(align::reverse_complement(s)).letters != s.letters) std::abort();
  } catch (const strata::user_error& e) {
    if (std::string_view(e.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
