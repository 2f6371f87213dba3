// SPDX-License-Identifier: Apache-2.0
// The exceptions that Strata throws. An exception thrown by a task of the user travels unchanged to
// its join; these are ours.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace strata {

/// The base of everything Strata throws: the operating system refused something, or one of the two
/// kinds below. what() is one line that says what happened, with which operands, and what can be
/// done about it.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The person at the keyboard gave something wrong: a flag, a variable, a file. A program prints
/// what() as one line on stderr and exits with status 2.
class user_error : public error {
 public:
  using error::error;
};

/// The program broke the contract of a function: for example fork2join outside a runtime. Fix the
/// program.
class misuse_error : public error {
 public:
  using error::error;
};

/// A node of the job is gone, and with it whatever it held: its process ended, its host does not
/// answer. The job cannot go on; every run() and wait() that is in progress throws this. Under
/// `strata run` the program has ten seconds to save what it has before it is ended.
class node_lost_error : public error {
 public:
  node_lost_error(std::uint16_t node, const std::string& what) : error(what), node_(node) {}
  /// Which one.
  [[nodiscard]] std::uint16_t node() const noexcept { return node_; }

 private:
  std::uint16_t node_;
};

/// An exception left a fiber or a task on another node. what() is that exception's, with its type
/// and the node.
class remote_error : public error {
 public:
  remote_error(std::uint16_t node, const std::string& what) : error(what), node_(node) {}
  /// Where it was thrown.
  [[nodiscard]] std::uint16_t node() const noexcept { return node_; }

 private:
  std::uint16_t node_;
};

}  // namespace strata
