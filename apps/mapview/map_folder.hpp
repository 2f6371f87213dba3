// SPDX-License-Identifier: Apache-2.0
// The folder that a map is made in: nothing in it is lost unasked, and nothing half made stays.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/os/descriptor.hpp"

namespace mapview {

class map_folder {
 public:
  explicit map_folder(std::string root) : root_(std::move(root)) {}
  // Unless keep() was called: removes the tiles that are there since prepare(), and those of the
  // folders that it made which are empty then.
  ~map_folder();
  map_folder(const map_folder&) = delete;
  map_folder& operator=(const map_folder&) = delete;

  // Makes the folder and its parts, which may be there (as links to other disks, say) if they are
  // empty. Where anything lies in them, refuses; with `replace` it removes the map that lies there,
  // whole or not, with all its tiles, and leaves other files as they are. A map.json that is of no
  // map is never removed. Refuses where another process makes a map there. Throws
  // strata::user_error.
  void prepare(std::uint32_t parts, bool replace);
  void keep() { kept_ = true; }

 private:
  void make_and_lock();
  void refuse_if_used() const;
  void remove_map(std::uint32_t parts);
  void remove_tiles() const;
  void make(const std::filesystem::path& folder);

  const std::string root_;
  std::vector<std::filesystem::path> made_;
  strata::os::descriptor folder_;  // locked until all that is to be removed has been
  bool ours_ = false;              // all tiles there are of this map
  bool kept_ = false;
};

}  // namespace mapview
