// SPDX-License-Identifier: Apache-2.0
// What reads from a stream waits for it as read() does.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "parts.hpp"
#include "support.hpp"

// Under the name that it has with glibc 2.38 or newer.
extern "C" int scan_as_c23(std::FILE* stream, const char* format, ...) __asm__("__isoc23_fscanf");

namespace descriptors {
namespace {

void put_text(int fd, std::string_view text) {
  SAME(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// f(stream) waits for `text`.
template <class F>
void reads(std::string_view text, F f) {
  a_pipe p;
  std::FILE* const stream = fdopen(p.in, "r");
  beside([&] { f(stream); }, [&] { put_text(p.out, text); });
  std::fclose(stream);
  p.in = -1;
}

}  // namespace

void streams() {
  reads("a", [](std::FILE* s) { SAME(std::getc(s), 'a'); });
  reads("a", [](std::FILE* s) { SAME(std::fgetc(s), 'a'); });
  reads("ab", [](std::FILE* s) {
    SAME(getc_unlocked(s), 'a');
    SAME(fgetc_unlocked(s), 'b');
  });
  reads("one\ntwo\n", [](std::FILE* s) {
    std::array<char, 16> line{};
    SAME(std::fgets(line.data(), line.size(), s) == line.data(), true);
    SAME(std::strcmp(line.data(), "one\n"), 0);
    SAME(std::fgets(line.data(), line.size(), s) == line.data(), true);
    SAME(std::strcmp(line.data(), "two\n"), 0);
  });
  reads("a line\n", [](std::FILE* s) {
    char* line = nullptr;
    std::size_t room = 0;
    SAME(getline(&line, &room, s), 7);
    std::free(line);
  });
  reads("a part;", [](std::FILE* s) {
    char* part = nullptr;
    std::size_t room = 0;
    SAME(getdelim(&part, &room, ';', s), 7);
    std::free(part);
  });
  reads("items", [](std::FILE* s) {
    std::array<char, 5> items{};
    SAME(std::fread(items.data(), 1, items.size(), s), items.size());
    SAME(std::memcmp(items.data(), "items", items.size()), 0);
  });
  reads("42 x", [](std::FILE* s) {
    int n = 0;
    SAME(std::fscanf(s, "%d", &n), 1);
    SAME(n, 42);
    SAME(std::ungetc('y', s), 'y');
    SAME(std::getc(s), 'y');
  });
  reads("17 x", [](std::FILE* s) {
    int n = 0;
    SAME(scan_as_c23(s, "%d", &n), 1);
    SAME(n, 17);
  });
  // Behind what is put back, and is not what was there, comes what had come.
  reads("ab\n", [](std::FILE* s) {
    SAME(std::getc(s), 'a');
    SAME(std::ungetc('y', s), 'y');
    SAME(std::getc(s), 'y');
    SAME(std::getc(s), 'b');
    SAME(std::ungetc('z', s), 'z');
    std::array<char, 4> line{};
    SAME(std::fgets(line.data(), line.size(), s) == line.data(), true);
    SAME(std::strcmp(line.data(), "z\n"), 0);
  });
}

// The end is told, and again; what is cleared waits anew.
void streams_that_end() {
  const a_terminal t;
  std::FILE* const stream = fdopen(dup(t.in), "r");
  constexpr std::string_view end("\4");
  beside([&] { SAME(std::getc(stream), EOF); }, [&] { put_text(t.out, end); });
  SAME(std::feof(stream) != 0, true);
  SAME(std::getc(stream), EOF);
  std::clearerr(stream);
  beside([&] { SAME(std::getc(stream), 'z'); }, [&] { put_text(t.out, "z\n"); });
  std::fclose(stream);
}

// Who asks for nothing does not wait.
void streams_asked_for_nothing() {
  const a_pipe p;
  std::FILE* const stream = fdopen(dup(p.in), "r");
  std::thread([&] {
    const volatile std::size_t none = 0;
    char one = 'x';
    SAME(std::fread(&one, 1, none, stream), 0);
    SAME(std::fread(&one, none, 1, stream), 0);
    SAME(one, 'x');
    SAME(std::fgets(&one, 1, stream) == &one, true);
    SAME(one, '\0');
  }).join();
  std::fclose(stream);
}

// What is still to be written goes before the wait: the other end answers to it.
void streams_of_both_ways() {
  const a_socketpair p;
  std::FILE* const stream = fdopen(dup(p.in), "r+");
  std::thread other([&] {
    SAME(get(p.out), '?');
    put(p.out, '!');
  });
  SAME(std::fputc('?', stream), '?');
  SAME(std::getc(stream), '!');
  other.join();
  std::fclose(stream);
}

// A handler without SA_RESTART ends the wait, as it ends a read.
void interrupted_streams() {
  const a_pipe p;
  std::FILE* const stream = fdopen(dup(p.in), "r");
  struct sigaction count {};
  count.sa_handler = &count_one;
  SAME(sigaction(SIGUSR1, &count, nullptr), 0);
  const int before = handled;
  std::atomic<bool> asks{false};
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    asks = true;
    SAME(std::getc(stream), EOF);
    SAME(errno, EINTR);
    SAME(std::ferror(stream) != 0, true);
    ended = true;
  });
  while (!asks) sched_yield();
  while (!ended) {
    pthread_kill(reader.native_handle(), SIGUSR1);
    let_others_wait();
  }
  reader.join();
  SAME(handled > before, true);
  std::fclose(stream);
}

}  // namespace descriptors
