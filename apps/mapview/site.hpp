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

  // `fail` is told of what no further request can mend, such as a lost node.
  site(const std::string& root, const map_info& map, loader& tiles, unsigned nodes,
       std::function<void(std::exception_ptr)> fail);

  // Any thread of the runtime.
  [[nodiscard]] http_answer answer(const http_request& r) noexcept;

  [[nodiscard]] std::uint64_t pictures() const { return pictures_; }
  [[nodiscard]] std::size_t missing() const { return missing_.count(); }

 private:
  http_answer content(const http_request& r);
  http_answer picture_of(const http_request& r);

  const map_info map_;
  const std::string description_;  // map.json
  viewer viewer_;
  missing_tiles missing_;
  const std::function<void(std::exception_ptr)> fail_;
  // Pictures that are made at once. Each has its pixels twice, as fragments and as a window.
  static constexpr int at_once = 4;
  strata::counting_semaphore<> turns_{at_once};
  std::atomic<std::uint64_t> pictures_{0};
};

}  // namespace mapview
