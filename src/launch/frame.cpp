// SPDX-License-Identifier: Apache-2.0
#include "launch/frame.hpp"

#include "strata/error.hpp"

namespace strata::launch {

namespace {

constexpr std::string_view mark = "SL";
constexpr std::size_t header_bytes = 8;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

}  // namespace

void refuse_frame(const std::string& why) {
  throw error("the line between launcher and node: " + why);
}

std::string pack_frame(frame_kind kind, std::string_view payload) {
  if (payload.size() > frame_bytes_max) {
    refuse_frame("a message of " + std::to_string(payload.size()) + " bytes is too long");
  }
  payload_writer out;
  out.raw(mark).u8(line_version).u8(static_cast<std::uint8_t>(kind));
  out.u32(static_cast<std::uint32_t>(payload.size())).raw(payload);
  return out.bytes();
}

std::optional<frame> frame_reader::next() {
  const std::string_view bytes = rest();
  // As early as possible: the rest of something else may never come.
  if (bytes.substr(0, mark.size()) != mark.substr(0, bytes.size())) {
    refuse_frame("what arrived is not a message of Strata");
  }
  if (bytes.size() < header_bytes) return std::nullopt;
  const auto version = static_cast<std::uint8_t>(bytes[2]);
  if (version != line_version) {
    refuse_frame("one end speaks version " + std::to_string(version) + ", the other " +
                 std::to_string(line_version) +
                 "; build the program with the library of this launcher");
  }
  const std::uint64_t length = little_endian(bytes.substr(4, 4));
  if (length > payload_bytes_max_) {
    refuse_frame("a message claims to be " + std::to_string(length) + " bytes long");
  }
  if (bytes.size() - header_bytes < length) return std::nullopt;
  frame result{static_cast<frame_kind>(bytes[3]), std::string(bytes.substr(header_bytes, length))};
  begin_ += header_bytes + length;
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);  // at most as many bytes as have been read since the last time
    begin_ = 0;
  }
  return result;
}

payload_writer& payload_writer::whole(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  return *this;
}

payload_writer& payload_writer::raw(std::string_view value) {
  bytes_ += value;
  return *this;
}

payload_writer& payload_writer::text(std::string_view value) {
  return u32(static_cast<std::uint32_t>(value.size())).raw(value);
}

payload_writer& payload_writer::texts(const std::vector<std::string>& values) {
  u32(static_cast<std::uint32_t>(values.size()));
  for (const std::string& value : values) text(value);
  return *this;
}

std::uint64_t payload_reader::whole(int size) {
  return little_endian(raw(static_cast<std::size_t>(size)));
}

std::string_view payload_reader::raw(std::size_t bytes) {
  if (bytes > rest_.size()) refuse_frame("a message ends too early");
  const std::string_view result = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return result;
}

std::string payload_reader::text(std::size_t bytes_max) {
  const std::size_t bytes = u32();
  if (bytes > bytes_max) refuse_frame("a text in a message is too long");
  return std::string(raw(bytes));
}

std::size_t payload_reader::count(std::size_t bytes_each) {
  const std::size_t number = u32();
  if (number > rest_.size() / bytes_each) refuse_frame("a message ends too early");
  return number;
}

std::vector<std::string> payload_reader::texts() {
  std::vector<std::string> values(count(4));
  for (std::string& value : values) value = text(frame_bytes_max);
  return values;
}

void payload_reader::done() const {
  if (!rest_.empty()) refuse_frame("a message is longer than it should be");
}

}  // namespace strata::launch
