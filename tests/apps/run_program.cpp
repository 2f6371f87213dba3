// SPDX-License-Identifier: Apache-2.0
#include "run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace apps_test {
namespace {

// An unnamed file that collects one stream; unlike a pipe it never fills up.
class capture {
 public:
  capture() : file_(std::tmpfile()) {
    if (file_ == nullptr) throw std::runtime_error("no temporary file");
  }
  ~capture() { std::fclose(file_); }
  capture(const capture&) = delete;
  capture& operator=(const capture&) = delete;

  int fd() const { return ::fileno(file_); }

  std::string text() {
    std::rewind(file_);
    std::string all;
    char block[4096];
    for (std::size_t n = 0; (n = std::fread(block, 1, sizeof block, file_)) > 0;)
      all.append(block, n);
    return all;
  }

 private:
  std::FILE* file_;
};

}  // namespace

std::string outcome::last_line() const {
  std::string text = out;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

outcome run(std::vector<std::string> arguments, const char* stdout_path) {
  const std::string path = std::string(APPS_BIN_DIR "/") + arguments.at(0);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  capture out;
  capture err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (stdout_path != nullptr) {
    posix_spawn_file_actions_addopen(&actions, 1, stdout_path, O_WRONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&actions, out.fd(), 1);
  }
  posix_spawn_file_actions_adddup2(&actions, err.fd(), 2);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + path);

  int status = 0;
  rusage used{};
  if (::wait4(pid, &status, 0, &used) != pid) throw std::runtime_error("wait4 failed");
  outcome o;
  o.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  o.out = out.text();
  o.err = err.text();
  o.peak_kib = used.ru_maxrss;
  return o;
}

outcome run_line(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  return run(arguments);
}

}  // namespace apps_test
