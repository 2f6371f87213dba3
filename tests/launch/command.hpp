// SPDX-License-Identifier: Apache-2.0
// The command strata as a user meets it: started, listened to, signalled.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace launch_test {

using words = std::vector<std::string>;

// Waits for events, never for a time: the test's own limit catches what does not come.
class command {
 public:
  struct setting {
    words variables{};      // NAME=VALUE
    std::string input{};    // what standard input holds
    words around{};         // a command that runs the command
    bool terminal = false;  // standard input is a terminal whose session the first process leads
    bool apart = false;     // the first process leads a session, which nobody outside can oversee
    bool other = false;     // the words are another command's, its name the first
  };

  // The words after `strata`. Words "%m" become a mark that only processes of this test carry.
  explicit command(words line);
  command(words line, const setting& how);
  ~command();
  command(const command&) = delete;
  command& operator=(const command&) = delete;

  // Reads until standard output holds `text`; false when it ends first.
  bool wait_for_output(const std::string& text);
  bool wait_for_error_output(const std::string& text);
  // Standard output is not read from now on, until wait(): a reader that stands still.
  void leave_output() { output_left_ = true; }
  // Nor ever again: a reader that is gone.
  void close_output();
  // By the launcher: signals are ordinary again then. False when it dies first.
  bool wait_until_only_its_reader_is_awaited() const { return is_only_its_reader_awaited_by(pid_); }
  // Likewise, where the launcher is below the first process.
  static bool is_only_its_reader_awaited_by(pid_t launcher);
  void signal(int number) const;
  // On the terminal: "\x03" is Ctrl-C.
  void type(const std::string& keys) const;
  // As when its window is closed.
  void close_terminal();
  // Reads both outputs to their end, which is when every process that had them is gone, and returns
  // the exit status (128 + signal).
  int wait();
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& err() const { return err_; }
  // Processes that carry the mark.
  [[nodiscard]] int processes_left() const;
  // Waits until none does: for those that let go of the outputs before they are gone.
  void wait_for_no_process() const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  bool read_some();

  std::string mark_;
  pid_t pid_ = -1;
  int out_fd_ = -1, err_fd_ = -1;
  int terminal_fd_ = -1;  // where it is typed
  bool output_left_ = false;
  std::string out_, err_;
};

// The program whose arguments are its actions; see node.cpp.
std::string node_program();

// A script in place of ssh: runs the command here, whatever the host. ssh's own options go before.
inline constexpr const char* ssh_to_this_machine =
    "#!/bin/sh\nwhile [ \"$1\" != \"${1#-}\" ]; do shift 2; done\nshift\nexec \"$@\"\n";

// `strata run` with these flags, then the program with a mark and these actions.
words run(const words& flags, const words& actions);

std::size_t count_lines(const std::string& text);
bool contains(const std::string& text, const std::string& part);

// How a command ended.
struct result {
  int status;
  std::string out, err;
};

// Runs the command to its end: it prints "ok", succeeds and leaves no process.
void expect_ok(const words& line, const command::setting& how = {});

}  // namespace launch_test
