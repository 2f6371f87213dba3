// SPDX-License-Identifier: Apache-2.0
#include "tests/members/program_abrupt.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string_view>

#include "src/launch/frame.hpp"
#include "strata/error.hpp"
#include "strata/membership.hpp"
#include "strata/remote_thread.hpp"
#include "tests/common/say.hpp"

namespace {

using namespace strata;

bool is_word(launch::frame_kind word, std::string_view bytes) {
  try {
    launch::frame_reader arrived;
    arrived.add(bytes);
    const auto f = arrived.next();
    return f && f->kind == word;
  } catch (const error&) {  // of another connection
    return false;
  }
}

void die_here() { std::raise(SIGKILL); }

}  // namespace

// In place of the C library's.
extern "C" ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  static const bool words_are_late = std::getenv("WORDS_ARE_LATE") != nullptr;
  if (words_are_late) {
    const std::string_view all(static_cast<const char*>(bytes), size);
    // It dies before it has said that all know it,
    if (is_word(launch::frame_kind::entered, all)) return static_cast<ssize_t>(size);
    // and whatever may come before this word does.
    if (is_word(launch::frame_kind::missed, all)) ::usleep(200'000);
  }
  return ::syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}

void abrupt_loss(runtime& rt) {
  try {
    rt.run([] {
      test::say("listens");
      for (auto all = members(); !is_member(1); all = await_members_other_than(all)) {
      }
      call<die_here>(on_node{1});
    });
  } catch (const node_lost_error&) {
    std::_Exit(5);
  }
}
