// SPDX-License-Identifier: Apache-2.0
// libFuzzer harness of everything that nodes say to each other: a simulated job hears one message
// after the other, and goes on in between. Its own mutations put in what was said in real runs.
//
// cmake --preset asan -B build/fuzz -DSTRATA_FUZZ=ON -DCMAKE_CXX_FLAGS=-fsanitize=fuzzer-no-link
// ninja -C build/fuzz messages_fuzz && build/fuzz/bin/messages_fuzz -max_len=4096
// -max_total_time=600
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "tests/sim/recorded_talk.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace strata;
using namespace strata::test;

// The job; then messages, each with this before it.
struct job_head {
  std::uint8_t flavour, seed;
};
struct message_head {
  std::uint8_t k, goes_on;
  std::uint16_t bytes;
};

template <class T>
bool take(std::span<const std::uint8_t>& in, T& value) {
  if (in.size() < sizeof value) return false;
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return true;
}

// Less what is not there.
payload_bytes take_bytes(std::span<const std::uint8_t>& in, std::size_t n) {
  const auto taken = std::as_bytes(in.first(std::min(n, in.size())));
  in = in.subspan(taken.size());
  return {taken.begin(), taken.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t messages_max = 64;
  std::span<const std::uint8_t> in(data, size);
  job_head head{};
  if (!take(in, head)) return 0;
  hearing_job j(hearing_job::all_flavours[head.flavour % hearing_job::all_flavours.size()],
                head.seed, 3'000);
  message_head m{};
  for (std::size_t i = 0; i < messages_max && take(in, m); ++i) {
    const auto [at, from] = j.any_two();
    (void)j.hear_anywhere(at, from, static_cast<kind>(m.k % (last_kind + 1)),
                          take_bytes(in, m.bytes));
    j.go_on(m.goes_on % 64);
  }
  j.check_failure();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  static const corpus real = record_talk();
  prng random(seed);
  if (size < sizeof(job_head) || random.below(4) != 0)
    return LLVMFuzzerMutate(data, size, max_size);
  // One more at the end, changed or not.
  auto any = real.begin();
  std::advance(any, random.below(real.size()));
  const auto& [k, all] = *any;
  payload_bytes what = all[random.below(all.size())].payload;
  if (random.below(2) == 0) what = mutated(k, what, random);
  what.resize(std::min<std::size_t>(what.size(), 1'000));
  const message_head head{static_cast<std::uint8_t>(k), static_cast<std::uint8_t>(random.next()),
                          static_cast<std::uint16_t>(what.size())};
  if (size + sizeof head + what.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data + size, &head, sizeof head);
  if (!what.empty()) std::memcpy(data + size + sizeof head, what.data(), what.size());
  return size + sizeof head + what.size();
}
