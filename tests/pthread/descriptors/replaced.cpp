// SPDX-License-Identifier: Apache-2.0
// Descriptors that are closed while somebody waits for them, and numbers that mean another file
// then.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

// Who waits when the descriptor is closed waits for the file, as long as that is.
void closed_meanwhile() {
  a_pipe p;
  const int writes = dup(p.out);
  beside(
      [&] {
        char c = 0;
        const ssize_t n = read(p.in, &c, 1);
        SAME(n == 1 || (n < 0 && errno == EBADF), true);  // it may have come too late
      },
      [&] {
        const int reads = p.in;
        const int other = dup(p.in);
        close(reads);
        put(writes);
        SAME(dup2(other, reads), reads);
        close(other);
      });
  close(writes);
}

// Another file gets the number while two wait. Where all of them run on one kernel thread both have
// been waiting by then; elsewhere one may come too late, and waits for the other file.
void replaced_meanwhile() {
  a_pipe p;
  a_pipe fresh;
  const int spare = dup(p.in);
  const int number = p.in;
  const pid_t here = gettid();
  std::atomic<int> asking{0};
  std::atomic<int> others{0};
  std::atomic<bool> is_certain{true};
  std::vector<std::thread> all;
  for (int i = 0; i < 2; ++i)
    all.emplace_back([&] {
      if (gettid() != here) is_certain = false;
      ++asking;
      if (get(number) != 'o') ++others;
    });
  while (asking < 2) sched_yield();
  let_others_wait();
  SAME(dup2(fresh.in, number), number);
  for (int i = 0; i < 2; ++i) {
    put(p.out, 'o');
    put(fresh.out, 'n');
  }
  for (std::thread& t : all) t.join();
  if (is_certain) SAME(others, 0);
  close(spare);
}

// Of a kind that has no name but its number: who reads the new file does not wait for the old one.
void replaced_counters() {
  const int number = eventfd(0, 0);
  const int old = dup(number);
  const int fresh = eventfd(0, EFD_SEMAPHORE);
  std::uint64_t n = 0;
  beside([&] { SAME(read(number, &n, sizeof n), sizeof n); },
         [&] {
           let_others_wait();
           SAME(dup2(fresh, number), number);
           std::uint64_t m = 0;
           beside([&] { SAME(read(number, &m, sizeof m), sizeof m); },
                  [&] {
                    let_others_wait();
                    const std::uint64_t for_both = 2;  // if the other one has come too late
                    SAME(write(number, &for_both, sizeof for_both), sizeof for_both);
                  });
           SAME(m, 1);
           SAME(write(old, &m, sizeof m), sizeof m);
         });
  SAME(n, 1);
  for (const int fd : {number, old, fresh}) close(fd);
}

// From now on the kernel does not tell the process which of its descriptors are the same file.
static void forbid_comparing() {
  constexpr auto refuse = SECCOMP_RET_ERRNO | EPERM;
  std::array<sock_filter, 4> filter{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
                                     BPF_STMT(BPF_RET | BPF_K, refuse),
                                     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{filter.size(), filter.data()};
  SAME(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  // Where that is refused, too, the case is an easier one.
  (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// The same where nobody can tell the two files: who reads the new one gets nothing of the old one,
// and of two who read the same one neither stops the other's worker.
void replaced_counters_alike() {
  const auto read_from = [](int fd) {
    std::uint64_t n = 0;
    SAME(read(fd, &n, sizeof n), sizeof n);
    return n;
  };
  const auto add_to = [](int fd, std::uint64_t n) { SAME(write(fd, &n, sizeof n), sizeof n); };
  const auto in_child = [&] {
    const int number = eventfd(0, 0);
    const int old = dup(number);
    const int fresh = eventfd(0, EFD_SEMAPHORE);
    std::uint64_t n = 0;
    std::thread first([&] { (void)read_from(number); });
    let_others_wait();
    SAME(dup2(fresh, number), number);
    std::thread second([&] { n = read_from(number); });
    let_others_wait();
    add_to(number, 2);  // for both, if the first one has come too late
    add_to(old, 5);
    first.join();
    add_to(old, 5);
    second.join();
    SAME(n, 1);
    const int same = eventfd(0, EFD_SEMAPHORE);
    std::thread third([&] { SAME(read_from(same), 1); });
    std::thread fourth([&] { SAME(read_from(same), 1); });
    let_others_wait();
    add_to(same, 1);
    let_others_wait();
    // Not behind the one that still waits there, whatever numbers have become free.
    const int another = eventfd(0, EFD_SEMAPHORE);
    std::thread fifth([&] { SAME(read_from(another), 1); });
    let_others_wait();
    add_to(another, 1);
    fifth.join();
    add_to(same, 1);
    third.join();
    fourth.join();
  };
  SAME(status_of_child(in_child, &forbid_comparing), 0);
}

// The rest of a write goes where it has begun, once that is known by more than its number.
void replaced_while_writing() {
  a_pipe p;
  const int number = p.out;
  const std::vector<char> sent = message_of(much);
  const pid_t here = gettid();
  bool is_certain = false;
  std::atomic<bool> writes{false};
  std::thread writer([&] {
    is_certain = gettid() == here;
    writes = true;
    SAME(write(number, sent.data(), much), much);
  });
  while (!writes) sched_yield();
  // It has begun once something has come.
  std::vector<char> got(1);
  got[0] = get(p.in);
  const int other = memfd_create("strata-test", 0);
  SAME(dup2(other, number), number);
  const std::vector<char> rest = read_to_end(p.in);
  writer.join();
  got.insert(got.end(), rest.begin(), rest.end());
  if (is_certain) {
    SAME(got == sent, true);
    SAME(lseek(other, 0, SEEK_END), 0);
  }
  close(other);
}

}  // namespace descriptors
