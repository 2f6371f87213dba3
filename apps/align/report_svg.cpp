// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "apps/align/regions.hpp"
#include "apps/align/report.hpp"
#include "apps/align/words.hpp"

namespace align {
namespace {

constexpr double page_width = 1200, left = 90, right = 1150;

class picture {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char line[1024];
    const int n = std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_.append(line,
                 static_cast<std::size_t>(std::clamp(n, 0, static_cast<int>(sizeof line) - 1)));
  }
  void label(double x, double y, const char* style, const std::string& words) {
    add("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
    for (const char c : words) {
      if (c == '<')
        text_ += "&lt;";
      else if (c == '>')
        text_ += "&gt;";
      else if (c == '&')
        text_ += "&amp;";
      else if (static_cast<unsigned char>(c) > 126)
        text_ += '?';  // headers are in no known encoding
      else
        text_ += c;
    }
    text_ += "</text>\n";
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

struct axis {
  double from, to;     // pixels
  double first, last;  // positions
  [[nodiscard]] double operator()(double position) const {
    return from + (to - from) * (position - first) / std::max(1.0, last - first);
  }
};

// Round distances between ticks: 1, 2 or 5 times a power of ten.
double tick_distance(double span, int wanted) {
  const double rough = std::max(1.0, span / wanted);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= rough) return m * power;
  }
  return 10 * power;
}

std::string tick_words(double position, double distance) {
  char text[32];
  if (distance >= 100'000)
    std::snprintf(text, sizeof text, "%.4g Mb", position / 1e6);
  else if (distance >= 1000)
    return grouped(std::llround(position / 1000)) + " kb";
  else
    return grouped(std::llround(position));
  return text;
}

// From pale to dark blue (forward) or orange (reverse) between half and full identity.
std::string colour(const finding& f) {
  const double t = std::clamp((f.sum.identity() - 0.5) / 0.5, 0.0, 1.0);
  const auto mix = [&](int pale, int dark) { return static_cast<int>(pale + (dark - pale) * t); };
  char text[16];
  if (f.reverse_strand)
    std::snprintf(text, sizeof text, "#%02x%02x%02x", mix(253, 179), mix(208, 72), mix(162, 8));
  else
    std::snprintf(text, sizeof text, "#%02x%02x%02x", mix(158, 18), mix(202, 80), mix(225, 160));
  return text;
}

void horizontal_axis(picture& p, const axis& x, double y, bool above) {
  p.add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"axis\"/>\n", x.from, y, x.to,
        y);
  const double distance = tick_distance(x.last - x.first, 9);
  for (double at = std::ceil(x.first / distance) * distance; at <= x.last; at += distance) {
    const double px = x(at);
    p.add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"axis\"/>\n", px, y, px,
          above ? y - 5 : y + 5);
    p.label(px, above ? y - 9 : y + 18, "tick", tick_words(at, distance));
  }
}

// Panel 1: a dot plot of everything. Short hits get a dot, or nobody would see them.
void dot_plot(picture& p, const report_input& in, double top, double bottom, const region* zoom) {
  const axis x{left, right, 1, static_cast<double>(in.ref.size())};
  const axis y{bottom, top, 1, static_cast<double>(in.query.size())};
  p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"panel\"/>\n", left, top,
        right - left, bottom - top);
  const double distance = tick_distance(y.last, 5);
  for (double at = distance; at <= y.last; at += distance) {
    p.add("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n", left, y(at),
          right, y(at));
    p.label(left - 8, y(at) + 4, "side", tick_words(at, distance));
  }
  if (zoom) {
    const double a = x(static_cast<double>(zoom->begin)), b = x(static_cast<double>(zoom->end));
    p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"zoom\"/>\n", a - 3,
          top, b - a + 6, bottom - top);
  }
  horizontal_axis(p, x, bottom, false);
  std::vector<const finding*> order;
  for (const finding& f : in.result.hits) order.push_back(&f);
  std::reverse(order.begin(), order.end());  // the best on top
  for (const finding* f : order) {
    const std::string c = colour(*f);
    const double x1 = x(static_cast<double>(f->ref_begin)), x2 = x(static_cast<double>(f->ref_end));
    const double y1 = y(static_cast<double>(f->query_begin)),
                 y2 = y(static_cast<double>(f->query_end));
    p.add("<g><title>score %lld, %s identical</title>", static_cast<long long>(f->score),
          percent(f->sum.identity()).c_str());
    if (std::hypot(x2 - x1, y2 - y1) < 6) {
      p.add("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" class=\"dot\"/></g>\n",
            (x1 + x2) / 2, (y1 + y2) / 2, c.c_str());
    } else {
      p.add(
          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
          "class=\"hit\"/></g>\n",
          x1, y1, x2, y2, c.c_str());
    }
  }
}

// Panel 2: the richest region, with a ribbon from each of its parts to the stretch of the query it
// resembles.
void ribbons(picture& p, const report_input& in, double top, double bottom, const region& g) {
  const double margin = 0.03 * static_cast<double>(g.end - g.begin + 1);
  const axis q{left, right, 1, static_cast<double>(in.query.size())};
  const axis r{left, right, std::max(1.0, static_cast<double>(g.begin) - margin),
               std::min(static_cast<double>(in.ref.size()), static_cast<double>(g.end) + margin)};
  constexpr double bar = 16;
  horizontal_axis(p, q, top - 2, true);
  horizontal_axis(p, r, bottom + 2, false);
  p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"bar\"/>\n", left, top,
        right - left, bar);
  p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"bar\"/>\n", left,
        bottom - bar, right - left, bar);
  std::vector<const finding*> order = g.parts;
  std::stable_sort(order.begin(), order.end(),
                   [](auto* a, auto* b) { return a->score < b->score; });
  for (const finding* f : order) {
    const std::string c = colour(*f);
    const double q1 = q(static_cast<double>(f->query_begin)),
                 q2 = q(static_cast<double>(f->query_end));
    const double r1 = r(static_cast<double>(f->ref_begin)), r2 = r(static_cast<double>(f->ref_end));
    const double y1 = top + bar, y2 = bottom - bar, middle = (y1 + y2) / 2;
    p.add("<g><title>score %lld, %s identical</title><path fill=\"%s\" class=\"ribbon\" d=\"",
          static_cast<long long>(f->score), percent(f->sum.identity()).c_str(), c.c_str());
    p.add("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fL%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fZ\"/>",
          q1, y1, q1, middle, r1, middle, r1, y2, r2, y2, r2, middle, q2, middle, q2, y1);
    p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>",
          std::min(q1, q2), top, std::max(1.0, std::abs(q2 - q1)), bar, c.c_str());
    p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/></g>\n", r1,
          bottom - bar, std::max(1.0, r2 - r1), bar, c.c_str());
  }
  // What is known of the query, above its axis.
  int row = 0;
  for (const feature& f : known_features(in.query)) {
    const double a = q(static_cast<double>(f.begin)), b = q(static_cast<double>(f.end));
    p.add(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"9\" rx=\"2\" "
        "class=\"feature%d\"><title>%s</title></rect>\n",
        a, top - 44, b - a, row % 2, f.what);
    p.label((a + b) / 2, top - 49, "name", f.short_name);
    ++row;
  }
}

void legend(picture& p, double y, bool both) {
  finding sample;
  const auto swatches = [&](double x, const char* words, bool reverse) {
    sample.reverse_strand = reverse;
    for (int k = 0; k <= 20; ++k) {
      sample.sum.columns = 40;
      sample.sum.matches = 20 + k;
      p.add("<rect x=\"%.1f\" y=\"%.1f\" width=\"6.5\" height=\"10\" fill=\"%s\"/>\n", x + 6 * k,
            y - 9, colour(sample).c_str());
    }
    p.label(x + 134, y, "note", words);
  };
  swatches(left, both ? "50% to 100% identical, same strand" : "50% to 100% identical", false);
  if (both) swatches(left + 400, "reverse strand", true);
}

}  // namespace

std::string svg_picture(const report_input& in) {
  const std::vector<region> regions = group(in.result.hits, in.options.global ? 0 : 15'000);
  const bool zoom = !regions.empty() && !in.options.global &&
                    static_cast<double>(regions.front().end - regions.front().begin) <
                        0.5 * static_cast<double>(in.ref.size());
  constexpr double plot_top = 96, plot_bottom = 356;
  const double height = zoom ? 770 : 430;
  picture p;
  p.add(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\">\n",
      page_width, height, page_width, height);
  p.add(
      "<style>text{font-family:Helvetica,Arial,sans-serif;fill:#222}.title{font-size:21px;font-"
      "weight:bold}.sub{font-size:14px;fill:#555}"
      ".tick,.name{font-size:12px;text-anchor:middle;fill:#444}.name{font-size:11px}.side{font-"
      "size:12px;text-anchor:end;fill:#444}"
      ".note{font-size:12px;fill:#444}.axis{stroke:#444;stroke-width:1}.grid{stroke:#e4e4e4;stroke-"
      "width:1}"
      ".panel{fill:#fbfbfb;stroke:none}.zoom{fill:#ffe9a8;fill-opacity:.7}.hit{stroke-width:4;"
      "stroke-linecap:round}"
      ".dot{stroke:#fff;stroke-width:.6}.bar{fill:#e6e6e6}.ribbon{fill-opacity:.55}.feature0{fill:#"
      "7a9e7e}.feature1{fill:#b6a36b}</style>\n");
  p.add("<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  p.label(left, 36, "title", title(in.query) + " in " + title(in.ref));
  p.label(left, 60, "sub",
          std::to_string(in.result.hits.size()) +
              (in.result.hits.size() == 1 ? " alignment" : " alignments") + ", best score " +
              grouped(in.result.score) + ". Across: position in " + title(in.ref) +
              "; upwards: position in " + title(in.query) + ".");
  dot_plot(p, in, plot_top, plot_bottom, zoom ? &regions.front() : nullptr);
  if (zoom) {
    const region& g = regions.front();
    p.label(left, 430, "sub",
            "The region marked above: " + grouped(g.begin) + " to " + grouped(g.end) +
                " (below), and what in " + title(in.query) + " (above) it resembles.");
    ribbons(p, in, 520, 690, g);
  }
  legend(p, zoom ? 750 : 415, in.options.which == strands::both);
  p.add("</svg>\n");
  return std::move(p).text();
}

}  // namespace align
