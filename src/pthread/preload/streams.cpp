// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/streams.hpp"

#include <poll.h>
#include <stdio_ext.h>

#include <cerrno>
#include <optional>

#include "pthread/preload/descriptor_wait.hpp"
#include "pthread/preload/kinds.hpp"
#include "pthread/record.hpp"
#include "strata/detail/parking.hpp"
#include "threads/terminals.hpp"

extern "C" {
int __uflow(FILE* stream);
int __underflow(FILE* stream);
char* __fgets_chk(char* to, std::size_t room, int bytes, FILE* stream);
char* __fgets_unlocked_chk(char* to, std::size_t room, int bytes, FILE* stream);
std::size_t __fread_chk(void* to, std::size_t room, std::size_t bytes, std::size_t count,
                        FILE* stream);
std::size_t __fread_unlocked_chk(void* to, std::size_t room, std::size_t bytes, std::size_t count,
                                 FILE* stream);
// By these names in every mode of the compiler.
int real_vfscanf(FILE* stream, const char* format, std::va_list more) __asm__("__wrap_vfscanf");
int real_vfscanf_c99(FILE* stream, const char* format,
                     std::va_list more) __asm__("__wrap___isoc99_vfscanf");
int real_vfscanf_c23(FILE* stream, const char* format,
                     std::va_list more) __asm__("__wrap___isoc23_vfscanf");
}

namespace strata::preload {
namespace {

namespace posix = detail::posix;

// A hint: what another thread of the program does with the stream meanwhile is for its lock. What
// ungetc() has put back lies apart, and meanwhile what is read behind it is what is saved.
bool has_input(const std::FILE* stream) noexcept {
  constexpr int is_put_back = 0x0100;  // as the C library has it
  return stream->_IO_read_ptr < stream->_IO_read_end ||
         ((stream->_flags & is_put_back) != 0 && stream->_IO_save_base < stream->_IO_save_end);
}

// What the call would do without waiting: say that it is at its end, or cannot be read. Wide
// characters lie where we cannot see them.
bool answers_at_once(std::FILE* stream) noexcept {
  return (stream->_flags & _IO_EOF_SEEN) != 0 || stream->_mode > 0 || __freadable(stream) == 0;
}

// Whose lock is the OS thread's.
bool holds_streams() noexcept {
  const posix::record* const r = posix::self_if_any();
  return r != nullptr && r->streams_held != 0;
}

// -1: there is nothing to wait for.
int descriptor_to_wait_for(std::FILE* stream) {
  if (answers_at_once(stream) || !can_be_suspended() || holds_streams()) return -1;
  const int error = detail::errno_here();
  const int fd = fileno(stream);
  detail::set_errno_here(error);
  if (fd < 0) return -1;
  const file_kind kind = look_at(fd);
  if (kind == file_kind::ready || never_waits(fd)) return -1;
  const bool is_odd =
      kind == file_kind::device && detail::longest_read_ns(fd) != detail::parking::never;
  return is_odd ? -1 : fd;
}

// What the call does first when it has to read: what is to be seen before, is seen.
void flush_before_reading(std::FILE* stream) {
  const int error = detail::errno_here();
  if (__fpending(stream) != 0) std::fflush(stream);
  if (stream != stdout && __flbf(stdout) != 0 && __fpending(stdout) != 0) std::fflush(stdout);
  detail::set_errno_here(error);
}

[[gnu::noinline]] bool await_input(std::FILE* stream, std::optional<descriptor_wait>& wait) {
  const int fd = descriptor_to_wait_for(stream);
  if (fd < 0) return true;
  const wait_for what{fd, POLLIN};
  if (is_ready(what)) return true;
  flush_before_reading(stream);
  const int error = detail::errno_here();
  wait.emplace(what);
  if (wait->until_polled() == descriptor_wait::outcome::handled) {
    stream->_flags |= _IO_ERR_SEEN;
    detail::set_errno_here(EINTR);
    return false;
  }
  detail::set_errno_here(error);
  return true;
}

// Nobody else of us reads the same meanwhile. Who asks for nothing has nothing to wait for.
template <class Call>
auto when_there_is_input(std::FILE* stream, const Call& call, decltype(call()) failed,
                         bool asks = true) {
  if (has_input(stream) || !asks) [[likely]]
    return call();
  std::optional<descriptor_wait> wait;
  return await_input(stream, wait) ? call() : failed;
}

}  // namespace

int get_byte(std::FILE* stream) {
  return when_there_is_input(
      stream, [=] { return getc(stream); }, EOF);
}
int get_byte_of_input() { return get_byte(stdin); }

int get_byte_unlocked(std::FILE* stream) {
  return when_there_is_input(
      stream, [=] { return fgetc_unlocked(stream); }, EOF);
}
int get_byte_of_input_unlocked() { return get_byte_unlocked(stdin); }

int take_after_filling(std::FILE* stream) {
  return when_there_is_input(
      stream, [=] { return __uflow(stream); }, EOF);
}
int look_after_filling(std::FILE* stream) {
  return when_there_is_input(
      stream, [=] { return __underflow(stream); }, EOF);
}

char* get_line(char* to, int bytes, std::FILE* stream) {
  const auto call = [=] { return std::fgets(to, bytes, stream); };
  return when_there_is_input(stream, call, nullptr, bytes > 1);
}
char* get_line_checked(char* to, std::size_t room, int bytes, std::FILE* stream) {
  const auto call = [=] { return __fgets_chk(to, room, bytes, stream); };
  return when_there_is_input(stream, call, nullptr, bytes > 1);
}
char* get_line_unlocked(char* to, int bytes, std::FILE* stream) {
  const auto call = [=] { return fgets_unlocked(to, bytes, stream); };
  return when_there_is_input(stream, call, nullptr, bytes > 1);
}
char* get_line_unlocked_checked(char* to, std::size_t room, int bytes, std::FILE* stream) {
  const auto call = [=] { return __fgets_unlocked_chk(to, room, bytes, stream); };
  return when_there_is_input(stream, call, nullptr, bytes > 1);
}

ssize_t get_part(char** to, std::size_t* room, int end, std::FILE* stream) {
  return when_there_is_input(
      stream, [=] { return getdelim(to, room, end, stream); }, -1);
}
ssize_t get_whole_line(char** to, std::size_t* room, std::FILE* stream) {
  return get_part(to, room, '\n', stream);
}

std::size_t get_items(void* to, std::size_t bytes, std::size_t count, std::FILE* stream) {
  const auto call = [=] { return std::fread(to, bytes, count, stream); };
  return when_there_is_input(stream, call, 0, bytes != 0 && count != 0);
}
std::size_t get_items_checked(void* to, std::size_t room, std::size_t bytes, std::size_t count,
                              std::FILE* stream) {
  const auto call = [=] { return __fread_chk(to, room, bytes, count, stream); };
  return when_there_is_input(stream, call, 0, bytes != 0 && count != 0);
}
std::size_t get_items_unlocked(void* to, std::size_t bytes, std::size_t count, std::FILE* stream) {
  const auto call = [=] { return fread_unlocked(to, bytes, count, stream); };
  return when_there_is_input(stream, call, 0, bytes != 0 && count != 0);
}
std::size_t get_items_unlocked_checked(void* to, std::size_t room, std::size_t bytes,
                                       std::size_t count, std::FILE* stream) {
  const auto call = [=] { return __fread_unlocked_chk(to, room, bytes, count, stream); };
  return when_there_is_input(stream, call, 0, bytes != 0 && count != 0);
}

int scan(std::FILE* stream, const char* format, std::va_list more) {
  return when_there_is_input(
      stream, [&] { return real_vfscanf(stream, format, more); }, EOF);
}
int scan_input(const char* format, std::va_list more) { return scan(stdin, format, more); }
int scan_c99(std::FILE* stream, const char* format, std::va_list more) {
  return when_there_is_input(
      stream, [&] { return real_vfscanf_c99(stream, format, more); }, EOF);
}
int scan_input_c99(const char* format, std::va_list more) { return scan_c99(stdin, format, more); }
int scan_c23(std::FILE* stream, const char* format, std::va_list more) {
  return when_there_is_input(
      stream, [&] { return real_vfscanf_c23(stream, format, more); }, EOF);
}
int scan_input_c23(const char* format, std::va_list more) { return scan_c23(stdin, format, more); }

}  // namespace strata::preload

extern "C" {

[[gnu::visibility("default")]] int forward_scanf(const char* format, ...) __asm__("scanf");
[[gnu::visibility("default")]] int forward_fscanf(FILE* stream, const char* format,
                                                  ...) __asm__("fscanf");
[[gnu::visibility("default")]] int forward_scanf_c99(const char* format,
                                                     ...) __asm__("__isoc99_scanf");
[[gnu::visibility("default")]] int forward_fscanf_c99(FILE* stream, const char* format,
                                                      ...) __asm__("__isoc99_fscanf");
[[gnu::visibility("default")]] int forward_scanf_c23(const char* format,
                                                     ...) __asm__("__isoc23_scanf");
[[gnu::visibility("default")]] int forward_fscanf_c23(FILE* stream, const char* format,
                                                      ...) __asm__("__isoc23_fscanf");

int forward_scanf(const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = strata::preload::scan_input(format, more);
  va_end(more);
  return found;
}
int forward_fscanf(FILE* stream, const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = strata::preload::scan(stream, format, more);
  va_end(more);
  return found;
}
int forward_scanf_c99(const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = strata::preload::scan_input_c99(format, more);
  va_end(more);
  return found;
}
int forward_fscanf_c99(FILE* stream, const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = strata::preload::scan_c99(stream, format, more);
  va_end(more);
  return found;
}
int forward_scanf_c23(const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = strata::preload::scan_input_c23(format, more);
  va_end(more);
  return found;
}
int forward_fscanf_c23(FILE* stream, const char* format, ...) {
  std::va_list more;
  va_start(more, format);
  const int found = strata::preload::scan_c23(stream, format, more);
  va_end(more);
  return found;
}
}
