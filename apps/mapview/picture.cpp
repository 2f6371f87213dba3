// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/picture.hpp"

#include <png.h>
#include <turbojpeg.h>

#include <memory>
#include <mutex>
#include <strata/error.hpp>
#include <string_view>
#include <utility>

#include "apps/mapview/picture_rows.hpp"

namespace mapview {
namespace {

struct closes {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using turbo = std::unique_ptr<void, closes>;

// A decoder and its memory are not made anew for each tile. There are never more than threads that
// decode at once.
class decoders {
 public:
  [[nodiscard]] turbo take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        turbo t = std::move(idle_.back());
        idle_.pop_back();
        return t;
      }
    }
    turbo t(tjInitDecompress());
    if (t == nullptr) throw picture_error(tjGetErrorStr2(nullptr));
    return t;
  }
  void give_back(turbo t) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(t));
  }

 private:
  std::mutex mutex_;  // held for a few instructions, by whoever decodes
  std::vector<turbo> idle_;
};
decoders& all_decoders() {
  static decoders all;
  return all;
}

}  // namespace

picture decode_jpeg(std::span<const unsigned char> file, double scale, size expected) {
  turbo decoder = all_decoders().take();  // closed by an exception
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(decoder.get(), file.data(), file.size(), &width, &height, &subsampling,
                          &colours) != 0)
    throw picture_error(tjGetErrorStr2(decoder.get()));
  if (std::uint64_t{static_cast<unsigned>(width)} * static_cast<unsigned>(height) > held_pixels_max)
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
                    static_cast<int>(p.width), 0, static_cast<int>(p.height), TJPF_RGB,
                    TJFLAG_LIMITSCANS) != 0)  // to 500: each takes as long as a picture
    throw picture_error(tjGetErrorStr2(decoder.get()));
  all_decoders().give_back(std::move(decoder));
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
bool ends_with(const std::string& path, std::string_view end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}
}  // namespace

picture_format format_of(const std::string& path) {
  if (ends_with(path, ".jpg") || ends_with(path, ".jpeg")) return picture_format::jpeg;
  if (ends_with(path, ".png")) return picture_format::png;
  throw strata::user_error("'" + path + "': a picture's name must end in .jpg or .png");
}

void picture_file::write(const picture& p) {
  const std::vector<unsigned char> bytes =
      format_ == picture_format::jpeg ? encode_jpeg(p, 90) : encode_png(p);
  out_.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  out_.commit();
}

}  // namespace mapview
