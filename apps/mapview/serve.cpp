// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/serve.hpp"

#include <signal.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <strata/global_ptr.hpp>
#include <strata/mutex.hpp>

#include "apps/mapview/http_server.hpp"
#include "apps/mapview/site.hpp"

namespace mapview {
namespace {

std::atomic<http_server*> server_to_stop{nullptr};

void stop_server(int) {
  if (http_server* const s = server_to_stop.load()) s->stop();
}

// While it lives, the first SIGINT or SIGTERM stops the server; the second one ends the process.
class stops_by_signal {
 public:
  explicit stops_by_signal(http_server& s) {
    server_to_stop.store(&s);
    struct sigaction stop {};
    stop.sa_handler = &stop_server;
    stop.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(SIGINT, &stop, nullptr);
    ::sigaction(SIGTERM, &stop, nullptr);
  }
  ~stops_by_signal() { server_to_stop.store(nullptr); }
  stops_by_signal(const stops_by_signal&) = delete;
  stops_by_signal& operator=(const stops_by_signal&) = delete;
};

// The other nodes work for pictures under way until node 0, which the same Ctrl-C reaches, ends
// the job.
void leave_signals_to_the_first_node() {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
}

// What ended the server other than a signal.
class failure {
 public:
  void note(std::exception_ptr e) {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) first_ = std::move(e);
  }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (first_ != nullptr) std::rethrow_exception(first_);
  }

 private:
  strata::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace

int serve(apps::program& p, const std::string& root, std::uint16_t port,
          const std::function<std::unique_ptr<loader>(const map_info&)>& loader_for,
          const char* tiles_are_missing) {
  if (!apps::program::is_first_node()) leave_signals_to_the_first_node();
  std::size_t missing = 0;
  std::uint64_t pictures = 0;
  p.timed([&] {
    const map_info m = read_map(root);
    const auto tiles = loader_for(m);
    failure failed;
    http_server* self = nullptr;
    site pages(root, m, *tiles, strata::num_nodes(), [&](std::exception_ptr e) {
      failed.note(std::move(e));
      self->stop();
    });
    http_server server(port, [&](const http_request& r) { return pages.answer(r); });
    self = &server;
    const stops_by_signal signals(server);
    std::printf("http://127.0.0.1:%u/\n", server.port());
    std::fflush(stdout);
    server.serve();
    failed.rethrow();
    missing = pages.missing();
    pictures = pages.pictures();
  });
  return p.finish({{"map", root}}, {{"pictures", pictures}, {"missing", missing}}, missing == 0,
                  tiles_are_missing);
}

}  // namespace mapview
