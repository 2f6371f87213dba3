// SPDX-License-Identifier: Apache-2.0
// A process's connection to the PMIx server of its host: who it is in the job, what it tells the
// others, and what they have told.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::launch::pmix {

// One thread at a time, but for abort_job(). Connections of one process are counted, MPI's too: the
// first connects, the last takes leave.
class client {
 public:
  // Connects to the server that the environment names. Throws strata::error.
  client();
  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  // "OpenPMIx 4.2.2 ...", of the library itself. Throws strata::error when there is none.
  static std::string version();

  [[nodiscard]] unsigned rank() const noexcept;
  [[nodiscard]] unsigned size() const noexcept;
  // Those of the job on this host, ascending; we are one of them.
  [[nodiscard]] const std::vector<unsigned>& peers_of_host() const noexcept;

  // What the others can get() once all have met.
  void put(const std::string& key, std::string_view bytes);
  // Waits for the others to do the same. False when they have not in time.
  [[nodiscard]] bool meet(std::int64_t deadline_ns);
  // What each of `ranks` has put under the key; nothing for those who have not by then.
  std::vector<std::optional<std::string>> get(const std::vector<unsigned>& ranks,
                                              const std::string& key, std::int64_t deadline_ns);

  // A descriptor that is readable once the server is gone.
  [[nodiscard]] int gone_fd() const noexcept;
  // Asks the server to end all processes of the job, us too, which may take a moment.
  void abort_job(int status, const std::string& why) noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace strata::launch::pmix
