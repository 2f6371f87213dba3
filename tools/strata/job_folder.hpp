// SPDX-License-Identifier: Apache-2.0
// Where a user's open jobs can be spoken to: a folder that is the user's alone, in which the
// launcher of each has a socket that is named after the job. Nobody else reaches the sockets.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "os/descriptor.hpp"

namespace strata::launch {

// "3f2a91c0": how users call a job.
std::string job_name(std::uint64_t job);

class job_folder {
 public:
  // The one that a launcher uses: $XDG_RUNTIME_DIR/strata, where that variable names a folder of
  // the user's, or /tmp/strata-UID. Throws user_error when it is somebody else's or open to others.
  static job_folder create();
  // Those that there are: a job may have been started with another environment than ours. Throws as
  // create() does; the other one, if it is not ours alone, is passed over: anybody can make
  // something of its name, and no launcher of ours has used it.
  static std::vector<job_folder> all();

  // The jobs with a socket here, whether anybody listens or not.
  [[nodiscard]] std::vector<std::string> jobs() const;
  // A socket that listens, there under this name at once and no earlier. Throws error.
  [[nodiscard]] os::descriptor listen(const std::string& job) const;
  enum class outcome { connected, nobody, failed };
  // Never waits. nobody: there is none, or the launcher that had it has been killed.
  outcome connect(const std::string& job, os::descriptor& to) const;
  void remove(const std::string& job) const noexcept;

 private:
  explicit job_folder(os::descriptor folder) : folder_(std::move(folder)) {}
  // Throws user_error; no folder if there is none at this path.
  static job_folder open(const std::string& path);

  os::descriptor folder_;
};

}  // namespace strata::launch
