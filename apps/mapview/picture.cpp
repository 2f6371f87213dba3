// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/picture.hpp"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <strata/error.hpp>

#include "apps/common/output_file.hpp"
#include "apps/mapview/file.hpp"

namespace mapview {
namespace {

constexpr std::uint64_t pixels_max = std::uint64_t{1} << 30;

struct closes {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using turbo = std::unique_ptr<void, closes>;

}  // namespace

picture decode_jpeg(std::span<const unsigned char> file, double scale, size expected) {
  const turbo decoder(tjInitDecompress());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (decoder == nullptr || tjDecompressHeader3(decoder.get(), file.data(), file.size(), &width,
                                                &height, &subsampling, &colours) != 0)
    throw picture_error(tjGetErrorStr2(decoder.get()));
  if (std::uint64_t{static_cast<unsigned>(width)} * static_cast<unsigned>(height) > pixels_max)
    throw picture_error("more than 2^30 pixels");
  if (expected.width != 0 && (static_cast<std::uint32_t>(width) != expected.width ||
                              static_cast<std::uint32_t>(height) != expected.height))
    throw picture_error("not of the size that it should have");
  int count = 0;
  const tjscalingfactor* const factors = tjGetScalingFactors(&count);
  tjscalingfactor best{1, 1};
  for (int i = 0; i < count; ++i) {
    const double f = static_cast<double>(factors[i].num) / factors[i].denom;
    if (f >= scale && f < static_cast<double>(best.num) / best.denom) best = factors[i];
  }
  picture p(static_cast<std::uint32_t>(TJSCALED(width, best)),
            static_cast<std::uint32_t>(TJSCALED(height, best)));
  if (tjDecompress2(decoder.get(), file.data(), file.size(), p.rgb.data(),
                    static_cast<int>(p.width), 0, static_cast<int>(p.height), TJPF_RGB, 0) != 0)
    throw picture_error(tjGetErrorStr2(decoder.get()));
  return p;
}

std::vector<unsigned char> encode_jpeg(const picture& p, int quality) {
  const turbo encoder(tjInitCompress());
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int failed =
      encoder == nullptr ||
      tjCompress2(encoder.get(), p.rgb.data(), static_cast<int>(p.width), 0,
                  static_cast<int>(p.height), TJPF_RGB, &bytes, &size, TJSAMP_420, quality, 0);
  const std::unique_ptr<unsigned char, decltype(&tjFree)> owned(bytes, &tjFree);
  if (failed != 0) throw picture_error(tjGetErrorStr2(encoder.get()));
  return {bytes, bytes + size};
}

picture decode_png(std::span<const unsigned char> file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0)
    throw picture_error(image.message);
  image.format = PNG_FORMAT_RGB;
  if (std::uint64_t{image.width} * image.height > pixels_max) {
    png_image_free(&image);
    throw picture_error("more than 2^30 pixels");
  }
  picture p(image.width, image.height);
  if (png_image_finish_read(&image, nullptr, p.rgb.data(), 0, nullptr) == 0)
    throw picture_error(image.message);
  return p;
}

std::vector<unsigned char> encode_png(const picture& p) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = p.width;
  image.height = p.height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<unsigned char> bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, p.rgb.data(), 0, nullptr) == 0)
    throw picture_error(image.message);
  bytes.resize(size);
  return bytes;
}

namespace {

// How much of each source pixel each target pixel covers, along one axis.
struct covers {
  struct cover {
    std::uint32_t first;     // source pixel
    std::size_t begin, end;  // of its weights
  };
  std::vector<cover> of;
  std::vector<float> weights;  // of each cover: sum 1

  [[nodiscard]] std::uint32_t first() const { return of.front().first; }
  [[nodiscard]] std::uint32_t end() const {
    return of.back().first + static_cast<std::uint32_t>(of.back().end - of.back().begin);
  }
};

covers covers_of(double begin, double length, std::uint32_t targets, std::uint32_t size) {
  covers all;
  all.of.reserve(targets);
  const double step = length / targets;
  for (std::uint32_t i = 0; i < targets; ++i) {
    const double from = std::clamp(begin + i * step, 0.0, static_cast<double>(size));
    const double to = std::clamp(begin + (i + 1) * step, from, static_cast<double>(size));
    const auto first = std::min(static_cast<std::uint32_t>(from), size - 1);
    const auto last = std::clamp(static_cast<std::uint32_t>(std::ceil(to)), first + 1, size);
    const std::size_t at = all.weights.size();
    double sum = 0;
    for (std::uint32_t s = first; s < last; ++s) {
      const double w = std::max(std::min(to, s + 1.0) - std::max(from, double(s)), 1e-9);
      all.weights.push_back(static_cast<float>(w));
      sum += w;
    }
    for (std::size_t k = at; k < all.weights.size(); ++k)
      all.weights[k] = static_cast<float>(all.weights[k] / sum);
    all.of.push_back({first, at, all.weights.size()});
  }
  return all;
}

}  // namespace

void draw_scaled(const picture& from, const part& of, picture& into, std::uint32_t x,
                 std::uint32_t y, std::uint32_t width, std::uint32_t height) {
  if (width == 0 || height == 0) return;
  if (of.width == width && of.height == height && of.x >= 0 && of.y >= 0 &&
      of.x + of.width <= from.width && of.y + of.height <= from.height &&
      of.x == std::floor(of.x) && of.y == std::floor(of.y)) {
    for (std::uint32_t j = 0; j < height; ++j)
      std::memcpy(into.at(x, y + j),
                  from.at(static_cast<std::uint32_t>(of.x), static_cast<std::uint32_t>(of.y) + j),
                  std::size_t{3} * width);
    return;
  }
  const covers across = covers_of(of.x, of.width, width, from.width);
  const covers down = covers_of(of.y, of.height, height, from.height);
  // First down, all the columns that are needed at once; then across.
  const std::uint32_t left = across.first();
  std::vector<float> line(std::size_t{3} * (across.end() - left));
  for (std::uint32_t j = 0; j < height; ++j) {
    const covers::cover& rows = down.of[j];
    std::fill(line.begin(), line.end(), 0.5F);  // so that what is cut off is rounded
    for (std::size_t v = rows.begin; v < rows.end; ++v) {
      const std::uint8_t* const source =
          from.at(left, rows.first + static_cast<std::uint32_t>(v - rows.begin));
      const float weight = down.weights[v];
      for (std::size_t k = 0; k < line.size(); ++k)
        line[k] += weight * static_cast<float>(source[k]);
    }
    std::uint8_t* to = into.at(x, y + j);
    for (std::uint32_t i = 0; i < width; ++i) {
      const covers::cover& columns = across.of[i];
      const float* pixel = &line[std::size_t{3} * (columns.first - left)];
      float sum[3] = {0, 0, 0};
      for (std::size_t u = columns.begin; u < columns.end; ++u) {
        for (float& s : sum) s += across.weights[u] * *pixel++;
      }
      for (const float s : sum) *to++ = static_cast<std::uint8_t>(std::clamp(s, 0.0F, 255.0F));
    }
  }
}

namespace {
bool ends_with(const std::string& path, std::string_view end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}
[[noreturn]] void refuse_name(const std::string& path) {
  throw strata::user_error("'" + path + "': a picture's name must end in .jpg or .png");
}
}  // namespace

picture read_picture(const std::string& path) {
  const bool jpeg = ends_with(path, ".jpg") || ends_with(path, ".jpeg");
  if (!jpeg && !ends_with(path, ".png")) refuse_name(path);
  const std::vector<unsigned char> bytes = read_file(path);
  try {
    return jpeg ? decode_jpeg(bytes) : decode_png(bytes);
  } catch (const picture_error& e) {
    throw strata::user_error(path + ": not a picture that can be read (" + e.what() + ")");
  }
}

void write_picture(const std::string& path, const picture& p) {
  const bool jpeg = ends_with(path, ".jpg") || ends_with(path, ".jpeg");
  if (!jpeg && !ends_with(path, ".png")) refuse_name(path);
  apps::output_file out(path);
  const std::vector<unsigned char> bytes = jpeg ? encode_jpeg(p, 90) : encode_png(p);
  out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  out.commit();
}

}  // namespace mapview
