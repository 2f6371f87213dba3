// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/program_path.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "strata/error.hpp"

namespace strata::launcher {

namespace fs = std::filesystem;

namespace {

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_executable(const fs::path& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

// The kernel says of a script whose interpreter is missing that the script is.
std::string runnable(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::error_code ignored;
  if (file && file.get() == '#' && file.get() == '!' && std::getline(file, line)) {
    // As the kernel cuts it: to it the end of a line on Windows is a part of the name.
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const std::string interpreter = line.substr(begin, end - begin);
    // Of `env sh` the name that env looks for; with a flag env splits what follows, and drops it.
    const bool env_looks =
        fs::path(interpreter).filename() == "env" && line.ends_with('\r') &&
        line[std::min(line.find_first_not_of(" \t", end), line.size() - 1)] != '-';
    if (interpreter.ends_with('\r') || env_looks) {
      throw user_error(path.string() +
                       " is a script whose lines end as on Windows (CR LF), which the system does "
                       "not run; sed -i 's/\\r$//' mends it");
    }
    if (!fs::exists(interpreter, ignored))
      throw user_error(path.string() + " is a script for " + interpreter +
                       ", and there is no such program");
  }
  // As it is: behind a symbolic link ".." leads elsewhere than back.
  return fs::absolute(path);
}

struct own_file {
  fs::path path;
  std::error_code problem;
};

const own_file& own() {
  static const own_file at_start = [] {
    own_file f;
    f.path = fs::read_symlink("/proc/self/exe", f.problem);
    return f;
  }();
  return at_start;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.empty()) throw user_error("the program's name is empty");
  if (name.find('/') != std::string::npos) {
    std::error_code ignored;
    if (fs::is_directory(name, ignored)) throw user_error(name + " is a folder, not a program");
    if (!fs::exists(name, ignored)) throw user_error("there is no program " + name);
    if (!is_executable(name)) throw user_error(name + " is not executable; chmod +x makes it so");
    return runnable(name);
  }
  const char* const path = std::getenv("PATH");
  // To getline() an end without text is none; to shells it is the folder that we are in.
  std::istringstream folders((path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin") +
                             std::string(":"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (is_executable(candidate)) return runnable(candidate);
  }
  throw user_error("there is no program " + name + " along PATH" +
                   (is_executable(name) ? "; did you mean ./" + name + "?" : ""));
}

void note_own_path() { (void)own(); }

std::string own_path() {
  if (own().problem) throw error("cannot find the launcher's own file: " + own().problem.message());
  return own().path;
}

}  // namespace strata::launcher
