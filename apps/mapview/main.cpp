// SPDX-License-Identifier: Apache-2.0
// mapview: shows regions of huge maps. `make` writes a map, `view` one region of it, `serve` shows
// all of it in a web page, `regions` times the seven of the pCoR paper.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/common/program.hpp"
#include "apps/mapview/keep_memory.hpp"
#include "apps/mapview/make.hpp"
#include "apps/mapview/missing_tiles.hpp"
#include "apps/mapview/regions.hpp"
#include "apps/mapview/serve.hpp"
#include "apps/mapview/tidy_end.hpp"
#include "apps/mapview/viewer.hpp"
#include "src/base/shortened.hpp"

namespace {

using namespace mapview;

// Numbers between separators: "10,20,600,400", "640x480".
template <std::size_t N>
std::array<std::uint32_t, N> numbers_in(const std::string& flag, const std::string& text,
                                        char separator, const char* form) {
  std::array<std::uint32_t, N> all{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < N; ++i) {
    const auto parsed = std::from_chars(at, end, all[i]);
    const bool last = i + 1 == N;
    if (parsed.ec != std::errc() || (last ? parsed.ptr != end : parsed.ptr == end) ||
        (!last && *parsed.ptr != separator))
      throw strata::user_error(flag + ": " + strata::in_quotes(text) + " is not " + form);
    at = parsed.ptr + 1;
  }
  return all;
}

struct request {
  std::string root, from, out, csv, svg;
  std::string size = "9600x9600", tile = "640x480", region, window = "600x600";
  std::string loader, levels = "auto";
  bool full_size = false, replace = false;
  unsigned folders = 4, repeat = 5;
  std::uint16_t port = 0;
  int quality = 85;
};

map_info map_wanted(const request& r) {
  map_info m;
  std::tie(m.width, m.height) =
      std::tuple_cat(numbers_in<2>("--size", r.size, 'x', "WIDTHxHEIGHT"));
  std::tie(m.tile_width, m.tile_height) =
      std::tuple_cat(numbers_in<2>("--tile", r.tile, 'x', "WIDTHxHEIGHT"));
  m.folders = r.folders;
  if (m.width == 0 || m.height == 0 || m.width > map_side_max || m.height > map_side_max)
    throw strata::user_error("--size: a map has 1 to " + std::to_string(map_side_max) +
                             " pixels each way");
  if (m.tile_width < 16 || m.tile_height < 16 || m.tile_width > 16'384 || m.tile_height > 16'384)
    throw strata::user_error("--tile: a tile has 16 to 16384 pixels each way");
  return m;
}

std::uint32_t levels_wanted(const request& r, const map_info& m) {
  if (r.levels == "auto") return usual_levels(m);
  const auto [most] =
      numbers_in<1>("--levels", r.levels, ' ', "a number of smaller copies, or auto");
  return std::min(most, last_level(m));
}

map_info map_to_show(const request& r) {
  map_info m = read_map(r.root);
  if (r.full_size) m.levels = 0;
  return m;
}

std::unique_ptr<loader> loader_for(const request& r, const map_info& m) {
  if (r.loader.empty()) return make_loader(r.root, m);
  if (r.loader == "cluster") return make_cluster_loader(r.root, m);
  if (strata::num_nodes() > 1)
    throw strata::user_error("--loader threads is for one node; this job has " +
                             std::to_string(strata::num_nodes()));
  return make_threaded_loader(r.root, m);
}

loader_maker loaders_for(const request& r) {
  return [&r](const map_info& m) { return loader_for(r, m); };
}

// Says which tiles could not be read.
void report_missing(const std::string& root, const map_info& m, const viewer::shown& s) {
  constexpr std::size_t shown_max = 10;
  for (const std::vector<tile_place>* const some : {&s.replaced, &s.missing}) {
    for (std::size_t i = 0; i < std::min(some->size(), shown_max); ++i)
      std::fprintf(stderr, "mapview: %s\n", unreadable_tile(root, m, (*some)[i]).c_str());
    if (some->size() > shown_max)
      std::fprintf(stderr, "mapview: and %zu more tiles\n", some->size() - shown_max);
  }
}

int make(apps::program& p, const request& r) {
  std::optional<tidy_end> end;
  if (p.is_first_node()) end.emplace();  // the others have nothing to put away
  p.timed([&] {
    map_info m = map_wanted(r);
    std::unique_ptr<picture_rows> from;
    if (!r.from.empty()) {
      from = open_rows(r.from);
      std::tie(m.width, m.height) = std::pair(from->dimensions().width, from->dimensions().height);
      if (m.width > map_side_max || m.height > map_side_max)
        throw strata::user_error(r.from + ": has " + std::to_string(m.width) + "x" +
                                 std::to_string(m.height) + " pixels; a map has at most " +
                                 std::to_string(map_side_max) + " each way");
    }
    if (m.tiles() > tiles_max)
      throw strata::user_error(
          "--tile: " + std::to_string(m.width) + "x" + std::to_string(m.height) + " pixels make " +
          std::to_string(m.tiles()) + " tiles of that size; a map has at most " +
          std::to_string(tiles_max));
    m.levels = levels_wanted(r, m);
    make_map(r.root, m, from.get(),
             {.quality = r.quality, .replace = r.replace, .end = end ? &*end : nullptr});
  });
  end.reset();
  const map_info m = read_map(r.root);
  std::uint64_t smaller = 0;
  for (std::uint32_t level = 1; level <= m.levels; ++level) smaller += m.tiles(level);
  std::printf("%s: %u x %u pixels, %llu tiles in %u folders", r.root.c_str(), m.width, m.height,
              static_cast<unsigned long long>(m.tiles()), m.folders);
  if (m.levels != 0)
    std::printf(", %llu more of %u smaller levels", static_cast<unsigned long long>(smaller),
                m.levels);
  std::printf("\n");
  const std::string size = std::to_string(m.width) + "x" + std::to_string(m.height);
  return p.finish({{"map", r.root}, {"size", size}, {"tile", r.tile}, {"from", r.from}},
                  {{"width", m.width},
                   {"height", m.height},
                   {"tiles", m.tiles()},
                   {"levels", m.levels},
                   {"smaller_tiles", smaller}},
                  true);
}

int show(apps::program& p, const request& r) {
  // Now, so that an output that cannot be written is reported before the work.
  std::optional<picture_file> out;
  if (p.is_first_node()) out.emplace(r.out);
  map_info m;
  view v;
  const viewer::shown s = p.timed([&] {
    m = map_to_show(r);
    refuse_to_overwrite(r.root, m, "--out", r.out);
    v.region = {0, 0, m.width, m.height};
    if (!r.region.empty()) {
      const auto [x, y, w, h] = numbers_in<4>("--region", r.region, ',', "X,Y,WIDTH,HEIGHT");
      v.region = {x, y, w, h};
    }
    std::tie(v.width, v.height) =
        std::tuple_cat(numbers_in<2>("--window", r.window, 'x', "WIDTHxHEIGHT"));
    const auto tiles = loader_for(r, m);
    return viewer(m, *tiles).show(v);
  });
  out->write(s.window);
  report_missing(r.root, m, s);
  std::printf("%s: %zu tiles to %u x %u\n", r.out.c_str(), s.tiles, v.width, v.height);
  const unreadable_tiles tiles{s.missing.size(), s.replaced.size()};
  return p.finish({{"map", r.root}, {"region", r.region}, {"window", r.window}},
                  {{"tiles", s.tiles},
                   {"level", level_for(m, v)},
                   {"missing", s.missing.size()},
                   {"replaced", s.replaced.size()}},
                  is_whole(tiles), why_not_whole(tiles), exit_code_of(tiles));
}

int body(apps::program& p) {
  request r;
  apps::command_line& cli = p.cli();
  apps::command_line maker = cli.add_command("make", "writes a map: a picture's, or a terrain's");
  apps::command_line shower = cli.add_command("view", "writes a region of a map as a picture");
  apps::command_line server =
      cli.add_command("serve", "shows a map in a web page on 127.0.0.1, until Ctrl-C");
  apps::command_line timer = cli.add_command("regions", "times the seven regions of the paper");
  for (apps::command_line* const c : {&maker, &shower, &server, &timer})
    c->add("MAP", r.root, "the map's folder").required();
  maker.add("--from", r.from, "a picture (.jpg, .png); without it, a terrain");
  maker.add("--size", r.size, "of the terrain, WIDTHxHEIGHT; not with --from [9600x9600]");
  maker.add("--tile", r.tile, "of a tile, WIDTHxHEIGHT [640x480]");
  maker.add("--folders", r.folders, "spread the tiles over so many folders [4]")
      .check(apps::whole_number(1, 65'536, "of a map"));
  maker.add("--quality", r.quality, "of the JPEG tiles [85]")
      .check(apps::whole_number(1, 100, "of JPEG"));
  maker.add("--levels", r.levels,
            "N: with so many copies, each half the size of the one before; auto: for maps of more "
            "than 1000 tiles, down to a single tile [auto]");
  maker.add_flag("--replace", r.replace,
                 "remove the map that lies in the folder; without it, a folder in which anything "
                 "lies is refused");
  shower.add("--region", r.region, "X,Y,WIDTH,HEIGHT in pixels of the map [all of it]");
  shower.add("--window", r.window, "WIDTHxHEIGHT in pixels [600x600]");
  shower.add("--out", r.out, "the picture to write (.jpg, .png)").required();
  server.add("--port", r.port, "of the page [any that is free]")
      .check(apps::whole_number(0, 65'535, "of TCP"));
  timer.add("--repeat", r.repeat, "show each so often [5]")
      .check(apps::whole_number(1, 1000, "of a median"));
  timer.add("--csv", r.csv, "write the times here");
  timer.add("--svg", r.svg, "draw the times here");
  for (apps::command_line* const c : {&shower, &server, &timer})
    c->add("--loader", r.loader, "threads or cluster [threads on one node, cluster on several]")
        .check(apps::one_of({"threads", "cluster"}));
  for (apps::command_line* const c : {&shower, &timer})
    c->add_flag("--full-size", r.full_size, "decode the full size alone, no smaller copies");
  for (apps::command_line* const c : {&shower, &server, &timer})
    c->add_footer("Exit code 3: nothing is missing, but smaller copies could not be read.");
  p.parse();
  if (maker.chosen()) {
    if (!r.from.empty() && maker.given("--size"))
      throw strata::user_error(
          "--size is of a terrain; with --from the map has the picture's size: leave one of them "
          "out");
    return make(p, r);
  }
  if (server.chosen()) return serve(p, r.root, r.port, loaders_for(r));
  if (shower.chosen()) return show(p, r);
  return time_regions(
      p, {.root = r.root, .csv = r.csv, .svg = r.svg, .repeat = r.repeat},
      [&r] { return map_to_show(r); }, loaders_for(r));
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory();
  return apps::run_program("mapview", "Shows regions of huge maps made of JPEG tiles.", argc, argv,
                           body);
}
