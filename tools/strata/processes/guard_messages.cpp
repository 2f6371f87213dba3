// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/guard_messages.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "launch/frame.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

namespace {

// The three standard streams, a line and the memory of a job: five today.
constexpr std::size_t handed_over_max = 16;

bool send_bytes(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_bytes(int socket, char* to, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t got = ::recv(socket, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// Room for the descriptors that go with the first byte of a message.
struct beside {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * handed_over_max)> bytes{};
};

// The length, and with it the descriptors.
bool send_length(int socket, std::uint32_t length, const std::vector<int>& descriptors) {
  std::array<char, sizeof length> text;
  std::memcpy(text.data(), &length, sizeof length);
  iovec place{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  beside control;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(c), descriptors.data(), sizeof(int) * descriptors.size());
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent <= 0) return false;
  const auto done = static_cast<std::size_t>(sent);
  return send_bytes(socket, std::string_view(text.data(), text.size()).substr(done));
}

bool receive_length(int socket, std::uint32_t& length, std::vector<os::descriptor>& descriptors) {
  std::array<char, sizeof length> text;
  iovec place{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  beside control;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at) < c->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  const auto done = static_cast<std::size_t>(got);
  if (!receive_bytes(socket, text.data() + done, text.size() - done)) return false;
  std::memcpy(&length, text.data(), sizeof length);
  return true;
}

std::uint32_t bits(int value) { return static_cast<std::uint32_t>(value); }

}  // namespace

bool send_request(int socket, const guard_request& request) {
  payload_writer out;
  out.u8(static_cast<std::uint8_t>(request.word)).u32(bits(request.id)).u32(bits(request.number));
  std::vector<int> descriptors;
  if (request.word == guard_word::start) {
    const child_request& what = request.what;
    out.text(what.program).texts(what.arguments).texts(what.environment).text(what.directory);
    out.u8(what.own_session ? 1 : 0).u32(static_cast<std::uint32_t>(what.keep.size()));
    for (const int fd : what.keep) out.u32(bits(fd));
    descriptors = {what.in >= 0 ? what.in : 0, what.out >= 0 ? what.out : 1,
                   what.err >= 0 ? what.err : 2};
    descriptors.insert(descriptors.end(), what.keep.begin(), what.keep.end());
  }
  return send_length(socket, static_cast<std::uint32_t>(out.bytes().size()), descriptors) &&
         send_bytes(socket, out.bytes());
}

std::optional<guard_request> receive_request(int socket, std::vector<os::descriptor>& descriptors) {
  std::uint32_t length = 0;
  if (!receive_length(socket, length, descriptors)) return std::nullopt;
  std::string bytes(length, '\0');
  if (!receive_bytes(socket, bytes.data(), bytes.size())) return std::nullopt;
  payload_reader in(bytes);
  guard_request request;
  request.word = static_cast<guard_word>(in.u8());
  request.id = static_cast<child_id>(in.u32());
  request.number = static_cast<int>(in.u32());
  if (request.word != guard_word::start) return request;
  child_request& what = request.what;
  what.program = in.text(bytes.size());
  what.arguments = in.texts();
  what.environment = in.texts();
  what.directory = in.text(bytes.size());
  what.own_session = in.u8() != 0;
  what.keep.resize(in.count(4));
  for (int& fd : what.keep) fd = static_cast<int>(in.u32());
  in.done();
  return request;
}

bool send_answer(int socket, const guard_answer& answer) {
  std::array<char, sizeof answer> text;
  std::memcpy(text.data(), &answer, sizeof answer);
  return send_bytes(socket, {text.data(), text.size()});
}

std::optional<guard_answer> receive_answer(int socket) {
  std::array<char, sizeof(guard_answer)> text;
  if (!receive_bytes(socket, text.data(), text.size())) return std::nullopt;
  guard_answer answer;
  std::memcpy(&answer, text.data(), sizeof answer);
  return answer;
}

}  // namespace strata::launcher
