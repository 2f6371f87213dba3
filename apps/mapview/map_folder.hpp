// SPDX-License-Identifier: Apache-2.0
// The folder that a map is made in: nothing in it is lost unasked, and nothing half made stays.
#pragma once
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/mapview/map.hpp"
#include "src/os/descriptor.hpp"

namespace mapview {

class map_folder {
 public:
  explicit map_folder(std::string root) : root_(std::move(root)) {}
  // Gives up what finish() has not made a map.
  ~map_folder();
  map_folder(const map_folder&) = delete;
  map_folder& operator=(const map_folder&) = delete;

  // Makes the folder and its parts, which may be there (as links to other disks, say) if they are
  // empty. Where anything lies in them, refuses; with `replace` it removes the map that lies there,
  // whole or not, with all its tiles, and leaves other files as they are. A map.json that is of no
  // map is never removed. Refuses where another process makes a map there. Throws
  // strata::user_error.
  void prepare(std::uint32_t parts, bool replace);
  // Writes a file in one of the parts. Any thread, each file once. Throws strata::user_error.
  void write(const std::string& path, std::string_view bytes);
  // Flushes all of it to the disk and writes map.json: now there is a map. Throws
  // strata::user_error.
  void finish(const map_info& map);
  [[nodiscard]] const std::string& root() const { return root_; }
  // Removes the tiles that are there since prepare(), and those of the folders that it made which
  // are empty then. Whoever writes or finishes afterwards waits for ever. Any thread, one.
  void give_up() noexcept;

 private:
  void make_and_lock();
  void refuse_if_used() const;
  void remove_map(std::uint32_t parts);
  void remove_tiles() const;
  void make(const std::filesystem::path& folder);
  void flush(std::uint32_t parts) const;

  const std::string root_;
  std::vector<std::filesystem::path> made_;
  strata::os::descriptor folder_;  // locked until all that is to be removed has been
  bool ours_ = false;              // all tiles there are of this map
  bool kept_ = false;
  // Whoever writes a file shares it, so that who removes them all overlooks none.
  std::shared_mutex writing_;
  std::unique_lock<std::shared_mutex> given_up_;
};

}  // namespace mapview
