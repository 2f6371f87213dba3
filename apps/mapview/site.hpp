// SPDX-License-Identifier: Apache-2.0
// What the web server answers: the page, the map's description, and pictures of its regions. And
// what it refuses: a page of another site may be open in the same browser.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <strata/semaphore.hpp>
#include <string>

#include "apps/mapview/http.hpp"
#include "apps/mapview/missing_tiles.hpp"
#include "apps/mapview/viewer.hpp"

namespace mapview {

class site {
 public:
  static constexpr std::uint32_t window_max = 4096;  // pixels each way
  // Of a picture: they take some seconds. A region that is long and narrow, or one of a map without
  // smaller copies, could have any number.
  static constexpr std::uint64_t picture_tiles_max = 10'000;

  // `fail` is told of what no further request can mend: a lost node, which ends the job.
  site(const std::string& root, const map_info& map, loader& tiles,
       std::function<void(std::exception_ptr)> fail);

  // Any thread of the runtime. What goes wrong with one request is answered with status 500, named
  // on stderr, and of no consequence for others; but for a lost node, of which `fail` is told.
  [[nodiscard]] http_answer answer(const http_request& r) noexcept;

  [[nodiscard]] std::uint64_t pictures() const { return pictures_; }
  [[nodiscard]] unreadable_tiles unreadable() const { return missing_.count(); }
  // Requests with which something went wrong, but for a lost node.
  [[nodiscard]] std::uint64_t failed() const { return failed_; }

 private:
  void note_failure(const http_request& r, const char* why) noexcept;
  http_answer content(const http_request& r);
  http_answer picture_of(const http_request& r);

  static constexpr std::uint64_t failures_named_max = 100;  // more lines would help nobody

  const std::string root_;
  const map_info map_;
  viewer viewer_;
  missing_tiles missing_;
  const std::function<void(std::exception_ptr)> fail_;
  // Pictures that are made at once. Each has its pixels twice, as fragments and as a window.
  static constexpr int at_once = 4;
  strata::counting_semaphore<> turns_{at_once};
  std::atomic<std::uint64_t> pictures_{0}, failed_{0};
};

}  // namespace mapview
