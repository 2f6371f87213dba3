// SPDX-License-Identifier: Apache-2.0
#include "running_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace apps_test {

running::running(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  const std::string path = std::string(APPS_BIN_DIR "/") + arguments.at(0);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  std::array<int, 2> out{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  out_ = ::fdopen(out[0], "r");
  err_ = std::tmpfile();
  if (out_ == nullptr || err_ == nullptr) throw std::runtime_error("no file");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(err_), 2);
  // As from a shell, also when these tests run in the background, where a shell has them ignored.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGQUIT}) sigaddset(&signals, number);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawn(&pid_, path.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  if (error != 0) throw std::runtime_error("cannot start " + path);
}

running::~running() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::fclose(out_);
  std::fclose(err_);
}

std::string running::line() {
  std::string text;
  for (int c = 0; (c = std::fgetc(out_)) != EOF && c != '\n';) text += static_cast<char>(c);
  return text;
}

void running::signal(int number) { ::kill(pid_, number); }

outcome running::end() {
  outcome o;
  // To the end of the pipe: then nobody who has inherited it is left either.
  for (int c = 0; (c = std::fgetc(out_)) != EOF;) o.out += static_cast<char>(c);
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid failed");
  pid_ = -1;
  o.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::rewind(err_);
  for (int c = 0; (c = std::fgetc(err_)) != EOF;) o.err += static_cast<char>(c);
  return o;
}

}  // namespace apps_test
