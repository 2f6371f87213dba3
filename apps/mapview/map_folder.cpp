// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/map_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <set>
#include <strata/error.hpp>
#include <string_view>
#include <system_error>

#include "apps/common/output_file.hpp"
#include "apps/mapview/map.hpp"

namespace mapview {
namespace {

namespace fs = std::filesystem;

// As folder_path() names them.
bool is_part(std::string_view name) {
  constexpr std::string_view word = "part";
  if (name.substr(0, word.size()) != word) return false;
  name.remove_prefix(word.size());
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// Of a tile, and of map.json, a make that was killed may have left one that is not finished.
bool is_tile(std::string_view name) { return tile_named(apps::name_to_be(name)).has_value(); }
bool is_unfinished_about(std::string_view name) {
  return name != "map.json" && apps::name_to_be(name) == "map.json";
}

strata::user_error problem_at(const fs::path& path, const char* what, std::error_code problem) {
  return strata::user_error(path.string() + ": " + what + ": " + problem.message() +
                            "; choose another folder");
}

// What is in it, one name after the other; nothing where there is no such folder.
template <class Visit>
void each_in(const fs::path& folder, const Visit& visit) {
  std::error_code problem;
  fs::directory_iterator at(folder, problem);
  if (problem == std::errc::no_such_file_or_directory) return;
  for (; !problem && at != fs::directory_iterator(); at.increment(problem)) visit(*at);
  if (problem) throw problem_at(folder, "cannot be read", problem);
}

template <class Visit>
void each_part(const fs::path& root, const Visit& visit) {
  each_in(root, [&](const fs::directory_entry& e) {
    std::error_code none;
    if (is_part(e.path().filename().string()) && e.is_directory(none)) visit(e.path());
  });
}

void remove_file(const fs::path& file) {
  std::error_code problem;
  fs::remove(file, problem);
  if (problem) throw problem_at(file, "cannot be removed", problem);
}

// Whether the path leads to the folder that is open.
bool is_at(int folder, const std::string& path) {
  struct stat opened {};
  struct stat there {};
  return fstat(folder, &opened) == 0 && stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

}  // namespace

// Whoever else makes a map there would take our tiles for his. Gone with the process. A file system
// without such locks does without.
void map_folder::make_and_lock() {
  for (;;) {
    make(root_);
    folder_ = strata::os::descriptor(open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder_ && flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      made_.clear();  // by now the other one's
      throw strata::user_error("'" + root_ +
                               "': another mapview make is at work there; wait for it, or choose "
                               "another folder");
    }
    if (!folder_ || is_at(folder_.get(), root_)) return;
    made_.clear();  // another one that failed has removed it, and somebody may have made it anew
  }
}

void map_folder::prepare(std::uint32_t parts, bool replace) {
  if (root_.empty()) throw strata::user_error("a map without a name: choose a folder");
  const std::unique_lock lock(writing_);
  const fs::path root(root_), about = root / "map.json";
  std::error_code problem;
  make_and_lock();
  const bool has_map = fs::exists(about, problem);
  if (has_map && !is_of_a_map(about.string()))
    throw strata::user_error(about.string() +
                             ": is there, and of no map; choose another folder, or remove it");
  if (replace) {
    remove_map(parts);
  } else if (has_map) {
    throw strata::user_error("'" + root_ + "' holds a map; choose another folder, or --replace it");
  } else {
    refuse_if_used();
  }
  ours_ = true;
  for (std::uint32_t part = 0; part < parts; ++part) make(folder_path(root_, part));
}

map_folder::~map_folder() { give_up(); }

void map_folder::give_up() noexcept {
  if (!given_up_) given_up_ = std::unique_lock(writing_);
  if (kept_) return;
  try {
    if (ours_) {
      remove_file(fs::path(root_) / "map.json");
      remove_tiles();
    }
  } catch (...) {  // there is another error to be reported, or a signal to end by
  }
  std::error_code none;
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) fs::remove(*folder, none);
}

void map_folder::write(const std::string& path, std::string_view bytes) {
  const std::shared_lock lock(writing_);
  apps::output_file out(path);
  out.write(bytes);
  out.commit_unflushed();
}

void map_folder::finish(const map_info& map) {
  flush(map.folders);
  const std::shared_lock lock(writing_);
  write_map(root_, map);
  kept_ = true;
}

// One call for each disk instead of one for each file.
void map_folder::flush(std::uint32_t parts) const {
  std::set<dev_t> flushed;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::string path = folder_path(root_, part);
    const strata::os::descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat about {};
    if (!folder || fstat(folder.get(), &about) != 0 ||
        (flushed.insert(about.st_dev).second && syncfs(folder.get()) != 0))
      throw problem_at(path, "cannot be written to the disk", {errno, std::generic_category()});
  }
}

void map_folder::refuse_if_used() const {
  each_in(root_, [&](const fs::directory_entry& e) {
    std::error_code none;
    const auto refuse = [](const fs::path& what) {
      throw strata::user_error(what.string() +
                               ": is in the way; choose an empty folder, or with --replace make "
                               "the map beside it");
    };
    const auto unfinished = [&] {
      return strata::user_error("'" + root_ +
                                "' holds what is left of a map that was not finished; choose "
                                "another folder, or --replace it");
    };
    if (is_unfinished_about(e.path().filename().string())) throw unfinished();
    if (!is_part(e.path().filename().string()) || !e.is_directory(none)) refuse(e.path());
    each_in(e.path(), [&](const fs::directory_entry& inner) {
      if (!is_tile(inner.path().filename().string())) refuse(inner.path());
      throw unfinished();
    });
  });
}

void map_folder::remove_map(std::uint32_t parts) {
  remove_file(fs::path(root_) / "map.json");
  remove_tiles();
  each_in(root_, [](const fs::directory_entry& e) {
    std::error_code none;
    if (is_unfinished_about(e.path().filename().string()) && e.is_regular_file(none))
      remove_file(e.path());
  });
  std::vector<fs::path> needless;
  each_part(root_, [&](const fs::path& part) {
    const std::string name = part.filename().string();
    std::uint32_t number = 0;
    const auto read = std::from_chars(name.data() + 4, name.data() + name.size(), number);
    if (read.ec != std::errc() || number >= parts) needless.push_back(part);
  });
  // Those in which other files lie stay, and so do links to other disks.
  std::error_code problem;
  for (const fs::path& part : needless) {
    if (!fs::is_symlink(part, problem)) fs::remove(part, problem);
  }
}

void map_folder::remove_tiles() const {
  each_part(root_, [&](const fs::path& part) {
    each_in(part, [&](const fs::directory_entry& e) {
      std::error_code none;
      if (is_tile(e.path().filename().string()) && e.is_regular_file(none)) remove_file(e.path());
    });
  });
}

void map_folder::make(const fs::path& folder) {
  std::error_code problem;
  if (fs::is_directory(folder, problem)) return;
  if (const fs::path parent = folder.parent_path(); !parent.empty() && parent != folder)
    make(parent);
  problem.clear();
  if (fs::create_directory(folder, problem)) made_.push_back(folder);
  if (problem) throw problem_at(folder, "cannot be made", problem);
}

}  // namespace mapview
