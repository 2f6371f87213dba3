// SPDX-License-Identifier: Apache-2.0
#include "apps/align/lent.hpp"

#include <zlib.h>

#include <array>
#include <mutex>
#include <optional>
#include <strata/detail/check.hpp>
#include <strata/error.hpp>
#include <strata/runtime.hpp>
#include <string>

namespace align {
namespace {

struct lent {
  const sequence* query = nullptr;
  const sequence* ref = nullptr;
  scoring score;
  // Made when they are needed first.
  std::optional<sequence> other_strand;
  std::optional<std::uint32_t> checksum;
};
lent lent_here;
std::mutex mutex;  // of what is made later

std::uint32_t checksum_of(const lent& l) {
  const auto add = [](uLong sum, const sequence& s) {
    return crc32_z(sum, s.codes.data(), s.size());
  };
  uLong sum = add(add(0, *l.query), *l.ref);
  const std::array<std::uint64_t, 6> rest{l.query->size(),
                                          l.ref->size(),
                                          static_cast<std::uint64_t>(l.score.match),
                                          static_cast<std::uint64_t>(l.score.mismatch),
                                          static_cast<std::uint64_t>(l.score.open),
                                          static_cast<std::uint64_t>(l.score.extend)};
  sum = crc32_z(sum, reinterpret_cast<const unsigned char*>(rest.data()), sizeof rest);
  return static_cast<std::uint32_t>(sum);
}

std::string node_name() { return "node " + std::to_string(strata::node_id()); }

}  // namespace

void lend_sequences(const sequence& query, const sequence& ref, const scoring& score) {
  const std::lock_guard lock(mutex);
  lent_here = {&query, &ref, score, {}, {}};
}

const scoring& lent_scoring() { return lent_here.score; }

letters_view lent_query(bool reverse_strand) {
  STRATA_CHECK(lent_here.query != nullptr);
  if (!reverse_strand) return {lent_here.query->codes};
  const std::lock_guard lock(mutex);
  if (!lent_here.other_strand) lent_here.other_strand = reverse_complement(*lent_here.query);
  return {lent_here.other_strand->codes};
}

letters_view lent_ref() {
  STRATA_CHECK(lent_here.ref != nullptr);
  return {lent_here.ref->codes};
}

std::uint32_t lent_checksum() {
  STRATA_CHECK(lent_here.query != nullptr);
  const std::lock_guard lock(mutex);
  if (!lent_here.checksum) lent_here.checksum = checksum_of(lent_here);
  return *lent_here.checksum;
}

void expect_lent(std::uint32_t checksum) {
  if (lent_here.query == nullptr || lent_checksum() != checksum)
    throw strata::user_error(node_name() +
                             " has other sequences or parameters than node 0; give all nodes the "
                             "same files and flags");
}

const kernel_set& kernels_of_node_0(const char* name) {
  const kernel_set* const kernels = find_kernels(name);
  if (kernels == nullptr)
    throw strata::user_error(node_name() + " cannot run the " + name +
                             " instructions of node 0; choose others with --kernels");
  return *kernels;
}

}  // namespace align
