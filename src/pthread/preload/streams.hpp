// SPDX-License-Identifier: Apache-2.0
// stdio's functions that read. The C library calls its own read() for them, with the stream's lock,
// which is the OS thread's: so a thread waits before such a call, without the lock, until there is
// something to read, and then makes it. What comes in parts (half a line) is waited for inside of
// it, and so are wide characters; those stop the worker.
#pragma once
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace strata::preload {

int get_byte(std::FILE* stream);
int get_byte_of_input();
int get_byte_unlocked(std::FILE* stream);
int get_byte_of_input_unlocked();
// What the macros call for a stream that has nothing left: the first takes the byte.
int take_after_filling(std::FILE* stream);
int look_after_filling(std::FILE* stream);
char* get_line(char* to, int bytes, std::FILE* stream);
char* get_line_checked(char* to, std::size_t room, int bytes, std::FILE* stream);
char* get_line_unlocked(char* to, int bytes, std::FILE* stream);
char* get_line_unlocked_checked(char* to, std::size_t room, int bytes, std::FILE* stream);
ssize_t get_part(char** to, std::size_t* room, int end, std::FILE* stream);
ssize_t get_whole_line(char** to, std::size_t* room, std::FILE* stream);
std::size_t get_items(void* to, std::size_t bytes, std::size_t count, std::FILE* stream);
std::size_t get_items_checked(void* to, std::size_t room, std::size_t bytes, std::size_t count,
                              std::FILE* stream);
std::size_t get_items_unlocked(void* to, std::size_t bytes, std::size_t count, std::FILE* stream);
std::size_t get_items_unlocked_checked(void* to, std::size_t room, std::size_t bytes,
                                       std::size_t count, std::FILE* stream);
// As the C library has them for sources of C89 with its extensions, for later ones, and for those
// of C23, which it has from 2.38 on.
int scan(std::FILE* stream, const char* format, std::va_list more);
int scan_input(const char* format, std::va_list more);
int scan_c99(std::FILE* stream, const char* format, std::va_list more);
int scan_input_c99(const char* format, std::va_list more);
int scan_c23(std::FILE* stream, const char* format, std::va_list more);
int scan_input_c23(const char* format, std::va_list more);

}  // namespace strata::preload
