// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/serve.hpp"

#include <cstdio>
#include <exception>
#include <mutex>
#include <strata/error.hpp>
#include <strata/mutex.hpp>
#include <strata/thread.hpp>

#include "apps/mapview/http_server.hpp"
#include "apps/mapview/site.hpp"
#include "apps/mapview/stop_signals.hpp"
#include "src/base/standard_output.hpp"

namespace mapview {
namespace {

// What ended the server other than a signal.
class failure {
 public:
  void note(std::exception_ptr e) {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) first_ = std::move(e);
  }
  [[nodiscard]] bool any() {
    const std::lock_guard lock(mutex_);
    return first_ != nullptr;
  }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (first_ != nullptr) std::rethrow_exception(first_);
  }

 private:
  strata::mutex mutex_;
  std::exception_ptr first_;
};

// Ends with a signal, also where an error ends the server.
class stopping_thread {
 public:
  stopping_thread(stop_signals& signals, http_server& server, failure& failed)
      : thread_([&] {
          if (!signals.wait())
            failed.note(std::make_exception_ptr(strata::user_error(
                "cannot wait for clients: the system refuses a thread; allow more of them (ulimit "
                "-u), or more memory")));
          server.stop();
        }) {}
  ~stopping_thread() {
    if (!thread_.joinable()) return;
    stop_signals::come();
    thread_.join();
  }
  stopping_thread(const stopping_thread&) = delete;
  stopping_thread& operator=(const stopping_thread&) = delete;
  void join() { thread_.join(); }

 private:
  strata::thread thread_;
};

}  // namespace

int serve(apps::program& p, const std::string& root, std::uint16_t port,
          const loader_maker& loader_for) {
  unreadable_tiles tiles;
  std::uint64_t pictures = 0, unanswered = 0;
  // On the other nodes nobody waits for them: those work for pictures under way until node 0, which
  // the same Ctrl-C reaches, ends the job.
  stop_signals signals;
  p.timed([&] {
    const map_info m = read_map(root);
    const auto load = loader_for(m);
    failure failed;
    http_server* self = nullptr;
    site pages(root, m, *load, [&](std::exception_ptr e) {
      failed.note(std::move(e));
      self->stop();
    });
    http_server server(port, [&](const http_request& r) { return pages.answer(r); });
    self = &server;
    stopping_thread stopper(signals, server, failed);
    std::printf("http://127.0.0.1:%u/\n", server.port());
    strata::flush_standard_output();  // nobody would find a page whose address is lost
    server.serve();
    if (failed.any()) stop_signals::come();
    stopper.join();
    failed.rethrow();
    tiles = pages.unreadable();
    pictures = pages.pictures();
    unanswered = pages.failed();
  });
  const nlohmann::json result{{"pictures", pictures},
                              {"missing", tiles.missing},
                              {"replaced", tiles.replaced},
                              {"unanswered", unanswered}};
  if (unanswered != 0 && tiles.missing == 0)
    return p.finish({{"map", root}}, result, false,
                    "some requests were not answered, as said above; please report this");
  return p.finish({{"map", root}}, result, is_whole(tiles), why_not_whole(tiles),
                  exit_code_of(tiles));
}

}  // namespace mapview
