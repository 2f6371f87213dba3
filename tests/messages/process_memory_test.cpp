// SPDX-License-Identifier: Apache-2.0
// Memory of another process: read and written where it is the right one, and never behind a closed
// door.
#include "messages/process_memory.hpp"

#include <gtest/gtest.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace {

using namespace strata::messages;

// In memory that both have: each waits for the other's word.
struct board {
  sem_t to_owner, to_other;
  process_mark mark;
  std::uint64_t door, address;
};
void await(sem_t& word) {
  while (::sem_wait(&word) != 0) {
  }
}

constexpr std::size_t block_bytes = std::size_t{3} << 20;
// A function of its own: clang would try for seconds to make such a string when it compiles.
std::string block_of(char letter) { return std::string(block_bytes, letter); }
const std::string at_first = block_of('a'), written_once = block_of('b'),
                  written_twice = block_of('c');

// The process that is read and written. Its exit status says what went wrong.
int owner(board& b) {
  std::string memory = at_first;
  b.mark = own_mark();
  b.door = own_door();
  b.address = reinterpret_cast<std::uintptr_t>(memory.data());
  ::sem_post(&b.to_other);
  await(b.to_owner);
  if (memory != written_once) return 1;
  close_door();
  ::sem_post(&b.to_other);
  await(b.to_owner);
  return memory == written_once ? 0 : 2;
}

TEST(process_memory, is_read_until_its_mark_is_revoked) {
  const std::uint32_t self = own_process();
  const std::string memory = at_first;
  std::string seen(block_bytes, 'x');
  revocable_mark mark;
  const process_mark by = mark.get();
  const auto read = [&] {
    return read_process(self, by, reinterpret_cast<std::uintptr_t>(memory.data()), seen.data(),
                        block_bytes);
  };
  if (!read()) GTEST_SKIP() << "this machine lets no process read memory";
  EXPECT_EQ(seen, at_first);
  EXPECT_TRUE(is_there(self, by));
  mark.revoke();
  EXPECT_FALSE(read());
  EXPECT_TRUE(is_there(self, by)) << "it may still write";
  EXPECT_FALSE(is_there(self, {by.address, by.value + 1}));
}

// The last bytes that can be read, or none of the next page's.
TEST(process_memory, is_not_read_in_part) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const two =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  std::memset(two, 'a', 2 * page);
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(two) + page, page, PROT_NONE), 0);
  const std::uint32_t self = own_process();
  const auto begin = reinterpret_cast<std::uintptr_t>(two);
  std::string seen(2 * page, 'x');
  const bool readable = read_process(self, own_mark(), begin, seen.data(), page);
  const bool all = read_process(self, own_mark(), begin, seen.data(), 2 * page);
  const bool one_more = read_process(self, own_mark(), begin + 1, seen.data(), page);
  const bool none = read_process(self, own_mark(), begin + page, seen.data(), page);
  ::munmap(two, 2 * page);
  if (!readable) GTEST_SKIP() << "this machine lets no process read memory";
  EXPECT_FALSE(all);
  EXPECT_FALSE(one_more);
  EXPECT_FALSE(none);
  EXPECT_TRUE(read_process(self, own_mark(), begin, seen.data(), 0)) << "there is nothing to read";
}

TEST(process_memory, is_written_until_its_owner_closes_the_door) {
  void* const shared =
      ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  board& b = *new (shared) board{};
  ASSERT_EQ(::sem_init(&b.to_owner, 1, 0), 0);
  ASSERT_EQ(::sem_init(&b.to_other, 1, 0), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(owner(b));
  await(b.to_other);
  const auto process = static_cast<std::uint32_t>(child);

  std::string seen(block_bytes, 'x');
  const bool readable = read_process(process, b.mark, b.address, seen.data(), block_bytes);
  if (readable) {
    EXPECT_EQ(seen, at_first);
    const process_mark wrong{b.mark.address, b.mark.value + 1};
    EXPECT_FALSE(read_process(process, wrong, b.address, seen.data(), block_bytes));
    EXPECT_FALSE(
        write_process(process, wrong, b.door, b.address, written_twice.data(), block_bytes));
    EXPECT_TRUE(
        write_process(process, b.mark, b.door, b.address, written_once.data(), block_bytes));
    ::sem_post(&b.to_owner);
    await(b.to_other);
    EXPECT_FALSE(
        write_process(process, b.mark, b.door, b.address, written_twice.data(), block_bytes));
    ::sem_post(&b.to_owner);
  } else {
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::munmap(shared, sizeof(board));
  if (!readable) GTEST_SKIP() << "this machine lets no process read another one's memory";
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(read_process(process, own_mark(), own_mark().address, seen.data(), 8));
}

}  // namespace
