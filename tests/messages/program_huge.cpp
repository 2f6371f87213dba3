// SPDX-License-Identifier: Apache-2.0
#include "program_huge.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <vector>

#include "../common/known_bytes.hpp"
#include "../common/require.hpp"
#include "os/memory_file.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace {

using namespace strata;
using test::known_bytes;
using test::last_node;
using test::require;

// The end lies far enough behind the border for pieces of every path to begin there.
constexpr std::size_t border = std::size_t{1} << 32, behind_border = 5'000'011;
constexpr std::size_t huge_bytes = border + behind_border;
// No divisor of the border: an offset without its upper bits leads to another place.
constexpr std::size_t repeated_bytes = (std::size_t{16} << 20) + (std::size_t{192} << 10);
constexpr std::size_t repeats = border / repeated_bytes;
constexpr std::size_t last_bytes = huge_bytes - repeats * repeated_bytes;
static_assert(border % repeated_bytes != 0 && last_bytes > behind_border);

// So many bytes of addresses, of which all but the last, border included, are the same few bytes of
// memory over and over again.
class folded_memory {
 public:
  folded_memory() {
    const int file = ::memfd_create("folded", MFD_CLOEXEC);
    require(file >= 0, "a file of memory");
    os::resize_memory_file(file, repeated_bytes + last_bytes, "memory for a message");
    void* const all =
        ::mmap(nullptr, huge_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(all != MAP_FAILED, "addresses for 4 GiB");
    data_ = static_cast<std::byte*>(all);
    for (std::size_t i = 0; i < repeats; ++i) map(file, 0, i * repeated_bytes, repeated_bytes);
    map(file, repeated_bytes, repeats * repeated_bytes, last_bytes);
    ::close(file);
  }
  ~folded_memory() { ::munmap(data_, huge_bytes); }
  folded_memory(const folded_memory&) = delete;
  folded_memory& operator=(const folded_memory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, huge_bytes}; }
  [[nodiscard]] std::span<std::byte> repeated() const { return bytes().first(repeated_bytes); }
  [[nodiscard]] std::span<std::byte> last() const { return bytes().last(last_bytes); }

 private:
  void map(int file, std::size_t from, std::size_t to, std::size_t bytes) {
    // All pages at once: one by one they take longer than the message.
    require(::mmap(data_ + to, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                   file, static_cast<off_t>(from)) != MAP_FAILED,
            "one more view of the same memory");
  }
  std::byte* data_ = nullptr;
};

std::vector<std::byte> of_repeated() { return known_bytes<repeated_bytes>(1, repeated_bytes); }
std::vector<std::byte> of_last() { return known_bytes<repeated_bytes>(2, last_bytes); }
static_assert(last_bytes <= repeated_bytes);

constexpr message_tag huge_one = 7, next_one = 8;

void send_huge(endpoint_id to) {
  endpoint& mine = this_thread::endpoint();
  const folded_memory out;
  const std::vector<std::byte> repeated = of_repeated(), last = of_last();
  std::memcpy(out.repeated().data(), repeated.data(), repeated.size());
  std::memcpy(out.last().data(), last.data(), last.size());
  mine.send_value(to, 0, mine.id());
  transfer sends = mine.start_send(to, huge_one, out.bytes());
  mine.send_value(to, next_one, 1);
  require(sends.wait().bytes == huge_bytes, "what was sent");
}

}  // namespace

void huge(runtime& rt) {
  rt.run([] {
    endpoint& mine = this_thread::endpoint();
    const folded_memory in;
    remote_thread other(on_node{last_node()}, call<send_huge>(mine.id()));
    const auto from = mine.receive_value<endpoint_id>(any_endpoint, 0);
    const auto require_known = [&](const message_info& m) {
      require(m.bytes == huge_bytes && m.count_of<std::byte>() == huge_bytes, "how many bytes");
      require(m.source == from && m.target == mine.id() && m.tag == huge_one, "whose message");
    };
    // Without its upper bits the size would fit.
    for (const std::size_t room : {behind_border, huge_bytes - 1}) {
      try {
        mine.receive(in.bytes().first(room), from, huge_one);
        require(false, "too little room");
      } catch (const message_too_large_error& e) {
        require_known(e.which());
      }
    }
    require_known(mine.wait_probe(from, huge_one));
    require(mine.receive_value<int>(from, next_one) == 1, "the message behind it");
    require_known(mine.receive(in.bytes(), from, huge_one));
    require(test::same(in.repeated(), of_repeated()), "what was written many times");
    require(test::same(in.last(), of_last()), "the last bytes");
    other.join();
  });
}
