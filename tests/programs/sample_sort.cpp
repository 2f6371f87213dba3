// SPDX-License-Identifier: Apache-2.0
// Sample sort over nodes: each member sorts what it has, all choose the same splitters from samples
// of everybody, and each gets what lies between two of them. The result is what std::sort makes of
// all the numbers, also where many are the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "programs.hpp"
#include "strata/fork_join.hpp"
#include "strata/group.hpp"

namespace programs {
namespace {

using number = std::uint64_t;

// Halves at the same time, then one of both.
void sort(std::span<number> all) {
  if (all.size() <= 2048) return std::sort(all.begin(), all.end());
  const std::size_t middle = all.size() / 2;
  strata::fork2join([&] { sort(all.first(middle)); }, [&] { sort(all.subspan(middle)); });
  std::inplace_merge(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(middle), all.end());
}

// What member `rank` begins with; each has another count.
std::vector<number> numbers_of(unsigned rank, unsigned kinds) {
  std::vector<number> all(20'000 + 1'000 * rank);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = mixed(std::uint64_t{rank} << 32 | i);
    if (kinds != 0) all[i] %= kinds;
  }
  return all;
}

// size - 1 numbers, the same everywhere.
std::vector<number> splitters_of(strata::group& all, std::span<const number> sorted) {
  constexpr unsigned samples_each = 32;
  std::vector<number> samples(samples_each), everybodys(std::size_t{samples_each} * all.size());
  for (unsigned i = 0; i < samples_each; ++i)
    samples[i] = sorted[(2 * i + 1) * sorted.size() / (2 * samples_each)];
  all.all_gather(samples, everybodys);
  std::sort(everybodys.begin(), everybodys.end());
  std::vector<number> splitters;
  for (unsigned i = 1; i < all.size(); ++i)
    splitters.push_back(everybodys[std::size_t{samples_each} * i]);
  return splitters;
}

// This member's part of all numbers, sorted.
std::vector<number> sort_in_group(strata::group& all, std::vector<number> mine) {
  const unsigned size = all.size();
  sort(mine);
  const std::vector<number> splitters = splitters_of(all, mine);
  std::vector<std::size_t> first{0};  // of those for each member
  for (const number s : splitters) {
    const auto at = std::upper_bound(mine.begin(), mine.end(), s);
    first.push_back(static_cast<std::size_t>(at - mine.begin()));
  }
  first.push_back(mine.size());
  std::vector<std::size_t> leave(size), come(size);
  for (unsigned to = 0; to < size; ++to) leave[to] = first[to + 1] - first[to];
  all.all_to_all(leave, come);
  std::vector<number> result(std::accumulate(come.begin(), come.end(), std::size_t{0}));
  // The blocks have sizes of their own, so they go as messages.
  strata::endpoint& here = strata::this_thread::endpoint();
  std::vector<strata::transfer> transfers;
  std::span<number> room(result);
  for (unsigned from = 0; from < size; ++from) {
    transfers.push_back(here.start_receive(room.first(come[from]), all.members()[from], 0));
    room = room.subspan(come[from]);
  }
  for (unsigned to = 0; to < size; ++to) {
    transfers.push_back(here.start_send(
        all.members()[to], 0, std::span<const number>(mine).subspan(first[to], leave[to])));
  }
  strata::wait_all(transfers);
  sort(result);
  return result;
}

void check_sort(strata::group& all, unsigned kinds) {
  const std::vector<number> mine = sort_in_group(all, numbers_of(all.rank(), kinds));
  const auto before = all.exclusive_scan(mine.size(), std::plus<>());
  const std::size_t total = all.all_reduce(mine.size(), std::plus<>());
  std::vector<number> wanted;
  for (unsigned rank = 0; rank < all.size(); ++rank) {
    const std::vector<number> some = numbers_of(rank, kinds);
    wanted.insert(wanted.end(), some.begin(), some.end());
  }
  require(total == wanted.size(), "the count of all numbers");
  std::sort(wanted.begin(), wanted.end());
  require(std::ranges::equal(mine, std::span(wanted).subspan(before.value_or(0), mine.size())),
          "this member's part of the sorted numbers");
  if (kinds != 0) return;
  const std::size_t largest =
      all.all_reduce(mine.size(), [](std::size_t a, std::size_t b) { return std::max(a, b); });
  require(largest <= 2 * total / all.size(), "parts of about the same size");
}

}  // namespace
}  // namespace programs

int main(int argc, char** argv) {
  using namespace programs;
  return run(argc, argv, [] {
    for (const unsigned kinds : {0U, 7U})
      strata::run_group(
          2, [](strata::group& all, unsigned k) { check_sort(all, k); }, kinds);
  });
}
