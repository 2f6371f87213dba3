// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/site.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <strata/error.hpp>
#include <strata/membership.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/mapview/page_files.hpp"

namespace mapview {
namespace {

http_answer refuse(int status, const std::string& why) {
  return {.status = status, .body = why + "\n"};
}

std::string describe(const std::string& root, const map_info& m, std::size_t nodes) {
  // As the user calls it; what "." and ".." lead to the system alone knows, behind links.
  std::filesystem::path name = root;
  if (!name.has_filename()) name = name.parent_path();
  if (name.filename() == "." || name.filename() == "..") {
    std::error_code ignored;
    name = std::filesystem::canonical(name, ignored);
  }
  const auto text = [](const std::string& bytes) {
    // What is not UTF-8 in a folder's name becomes a question mark.
    return nlohmann::json(bytes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  nlohmann::json j{{"width", m.width},
                   {"height", m.height},
                   {"tile_width", m.tile_width},
                   {"tile_height", m.tile_height},
                   {"tiles", m.tiles()},
                   {"folders", m.folders},
                   {"levels", m.levels},
                   {"nodes", nodes},
                   {"window_max", site::window_max}};
  j["name"] = nlohmann::json::parse(text(name.filename().string()));
  return j.dump() + "\n";
}

// A name that a DNS server of somebody else can lead here is none of ours: a page from there would
// count as of the same origin.
bool is_loopback(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = host.substr(colon + 1);
    if (port.empty() || port.size() > 5 ||
        !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; }))
      return false;
    host = host.substr(0, colon);
  }
  return host == "127.0.0.1" || host == "localhost";
}

// Throws user_error: what is wrong with the parameters.
view view_of(const http_request& r) {
  view v;
  const std::array<std::pair<const char*, std::uint32_t*>, 6> wanted{{{"x", &v.region.x},
                                                                      {"y", &v.region.y},
                                                                      {"width", &v.region.width},
                                                                      {"height", &v.region.height},
                                                                      {"to_width", &v.width},
                                                                      {"to_height", &v.height}}};
  for (const auto& [name, to] : wanted) {
    if (r.parameters.count(name) != 1)
      throw strata::user_error(std::string("give '") + name + "' once");
    const std::string& text = r.parameters.find(name)->second;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, *to);
    if (parsed.ec != std::errc() || parsed.ptr != end)
      throw strata::user_error(std::string("'") + name +
                               "' is not a whole number from 0 to 2^32-1");
  }
  if (r.parameters.size() != wanted.size())
    throw strata::user_error("a view has x, y, width, height, to_width and to_height alone");
  if (v.width == 0 || v.height == 0 || v.width > site::window_max || v.height > site::window_max)
    throw strata::user_error("to_width and to_height: a window has 1 to " +
                             std::to_string(site::window_max) + " pixels each way");
  return v;
}

}  // namespace

site::site(const std::string& root, const map_info& map, loader& tiles,
           std::function<void(std::exception_ptr)> fail)
    : root_(root), map_(map), viewer_(map, tiles), missing_(root, map), fail_(std::move(fail)) {}

http_answer site::answer(const http_request& r) noexcept {
  http_answer a;
  try {
    a = content(r);
  } catch (const strata::user_error& e) {
    a = refuse(400, e.what());
  } catch (const not_awaited&) {
    a = refuse(503, "the client has gone");
  } catch (const std::bad_alloc&) {
    a = refuse(503, "out of memory");
  } catch (const std::system_error&) {
    a = refuse(503, "no room for one more thread; try again");
  } catch (const strata::node_lost_error& e) {
    a = refuse(500, e.what());
    fail_(std::current_exception());
  } catch (const std::exception& e) {
    a = refuse(500, e.what());
    note_failure(r, e.what());
  }
  a.headers.merge(std::map<std::string, std::string>{
      {"Cache-Control", "no-store"},  // another map may be served here in a minute
      {"Content-Security-Policy",
       "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Content-Type-Options", "nosniff"}});
  return a;
}

void site::note_failure(const http_request& r, const char* why) noexcept {
  if (failed_++ < failures_named_max)
    std::fprintf(stderr, "mapview: %s was not answered: %s\n", r.path.c_str(), why);
}

http_answer site::content(const http_request& r) {
  if (!is_loopback(r.host)) return refuse(400, "Host must be 127.0.0.1 or localhost");
  if (r.method != "GET" && r.method != "HEAD") {
    http_answer a = refuse(405, "only GET and HEAD");
    a.headers["Allow"] = "GET, HEAD";
    return a;
  }
  // Following a link to the page is fine; using us from within another site is not.
  if (r.path != "/" && (r.fetch_site == "cross-site" || r.fetch_site == "same-site"))
    return refuse(403, "not for pages of other sites");
  if (r.path == "/view") return picture_of(r);
  if (r.path == "/map.json")
    return {.type = "application/json", .body = describe(root_, map_, strata::members().size())};
  for (const page_file& f : page_files()) {
    if (r.path == f.path) return {.type = std::string(f.type), .body = std::string(f.content)};
  }
  return refuse(404, "nothing here; the page is at /");
}

http_answer site::picture_of(const http_request& r) {
  using namespace std::chrono_literals;
  const view v = view_of(r);
  if (!turns_.try_acquire_for(30s)) return refuse(503, "too many pictures at once; try again");
  struct turn {
    strata::counting_semaphore<>& of;
    ~turn() { of.release(); }
  } const mine{turns_};
  // Whoever pans quickly leaves many behind who wait for what nobody looks at any more.
  if (!r.is_awaited()) throw not_awaited();
  const viewer::shown s = viewer_.show(v, {.tiles = picture_tiles_max, .is_awaited = r.is_awaited});
  missing_.note(s);
  const std::vector<unsigned char> bytes = encode_jpeg(s.window, 90);
  ++pictures_;
  http_answer a{.type = "image/jpeg", .body = std::string(bytes.begin(), bytes.end())};
  a.headers["X-Missing-Tiles"] = std::to_string(s.missing.size());
  return a;
}

}  // namespace mapview
