// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/control/job_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/errno_error.hpp"

namespace strata::launcher {

namespace {

constexpr std::size_t job_name_digits = 8;
// Until the launcher looks; one more would find it busy, and take it for stopped.
constexpr int connections_waiting = 1024;

constexpr const char* elsewhere = "set XDG_RUNTIME_DIR to a folder of your own";

// Empty: there is none, or it is somebody else's, as after `su`.
std::string under_runtime_folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  struct stat is {};
  if (runtime == nullptr || runtime[0] != '/' || ::stat(runtime, &is) != 0 ||
      is.st_uid != ::geteuid())
    return {};
  return std::string(runtime) + "/strata";
}

std::string under_tmp() { return "/tmp/strata-" + std::to_string(::geteuid()); }

// By way of the open folder: it may lie deeper than the address of a socket can say, and is the one
// that has been checked, whatever its path leads to by now.
sockaddr_un address_in(const os::descriptor& folder, const std::string& name) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
  path.copy(where.sun_path, sizeof where.sun_path - 1);
  return where;
}

const sockaddr* generic(const sockaddr_un& where) {
  return reinterpret_cast<const sockaddr*>(&where);
}

os::descriptor local_socket() {
  os::descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw errno_error("cannot create a socket", errno);
  return socket;
}

bool is_job_name(const std::string& name) {
  return name.size() == job_name_digits &&
         name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Not over a socket that another job has there. Some file systems (NFS and others) cannot rename
// so, and some filters of system calls do not know it (EPERM); a second name does the same in two
// steps.
bool take_free_name(int folder, const char* from, const char* to) {
  if (::renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return false;
  if (::linkat(folder, from, folder, to, 0) != 0) return false;
  (void)::unlinkat(folder, from, 0);
  return true;
}

}  // namespace

std::string job_name(std::uint64_t job) {
  std::array<char, job_name_digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(job & 0xffffffffU));
  return text.data();
}

job_folder job_folder::open(const std::string& path) {
  os::descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const int problem = errno;
  if (!folder && problem == ENOENT) return job_folder(os::descriptor());
  struct stat is {};
  if (!folder || ::fstat(folder.get(), &is) != 0 || is.st_uid != ::geteuid() ||
      (is.st_mode & 077) != 0) {
    throw user_error("the folder " + path +
                     ", where open jobs are listed, must be yours and closed to others (mode "
                     "0700); remove it, or " +
                     elsewhere);
  }
  return job_folder(std::move(folder));
}

job_folder job_folder::create() {
  const std::string runtime = under_runtime_folder();
  const std::string path = runtime.empty() ? under_tmp() : runtime;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw user_error(
        errno_error("cannot create the folder " + path + ", where open jobs are listed", errno,
                    elsewhere)
            .what());
  }
  job_folder folder = open(path);
  if (!folder.folder_) throw errno_error("cannot open the folder " + path, ENOENT);
  return folder;
}

std::vector<job_folder> job_folder::all() {
  std::vector<job_folder> found;
  const auto look = [&](const std::string& path) {
    job_folder one = open(path);
    if (one.folder_) found.push_back(std::move(one));
  };
  const std::string runtime = under_runtime_folder();
  if (runtime.empty()) {
    look(under_tmp());
    return found;
  }
  look(runtime);
  try {
    look(under_tmp());
  } catch (const user_error&) {
  }
  return found;
}

std::vector<std::string> job_folder::jobs() const {
  std::vector<std::string> names;
  // A descriptor of its own, because reading moves it.
  const int copy = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : ::fdopendir(copy),
                                                    &::closedir);
  if (entries == nullptr) {
    if (copy >= 0) ::close(copy);
    return names;
  }
  while (const dirent* const entry = ::readdir(entries.get())) {
    if (is_job_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

os::descriptor job_folder::listen(const std::string& job) const {
  os::descriptor socket = local_socket();
  // Whoever finds a socket on which nobody listens takes its launcher for dead; so it gets its
  // name when it listens already.
  const std::string hidden = "." + job;
  const sockaddr_un where = address_in(folder_, hidden);
  ::unlinkat(folder_.get(), hidden.c_str(), 0);
  if (::bind(socket.get(), generic(where), sizeof where) != 0 ||
      ::listen(socket.get(), connections_waiting) != 0 ||
      !take_free_name(folder_.get(), hidden.c_str(), job.c_str())) {
    const int problem = errno;
    ::unlinkat(folder_.get(), hidden.c_str(), 0);
    const bool has_proc = ::access("/proc/self/fd", F_OK) == 0;
    throw errno_error("cannot create the socket that lets nodes join the job", problem,
                      has_proc ? elsewhere : "it is reached by /proc, which is not mounted");
  }
  return socket;
}

job_folder::outcome job_folder::connect(const std::string& job, os::descriptor& to) const {
  const sockaddr_un where = address_in(folder_, job);
  to = local_socket();
  int done = 0;
  do {
    done = ::connect(to.get(), generic(where), sizeof where);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return outcome::connected;
  return errno == ECONNREFUSED || errno == ENOENT ? outcome::nobody : outcome::failed;
}

void job_folder::remove(const std::string& job) const noexcept {
  ::unlinkat(folder_.get(), job.c_str(), 0);
}

}  // namespace strata::launcher
