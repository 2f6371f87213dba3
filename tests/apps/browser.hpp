// SPDX-License-Identifier: Apache-2.0
// A real browser without a screen: Chromium, told what to do over a pair of pipes in the words of
// its DevTools protocol. What a test clicks and types goes the way of a user's clicks.
#pragma once
#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace apps_test {

class browser {
 public:
  // Where Chromium is installed; none: the test is to be skipped.
  static std::optional<std::string> installed();

  // A window of that size.
  browser(const std::string& program, int width, int height);
  ~browser();  // ends it with all its processes
  browser(const browser&) = delete;
  browser& operator=(const browser&) = delete;

  void open(const std::string& address);
  // The value of an expression of JavaScript in the page; of a promise, what it comes to.
  nlohmann::json value(const std::string& expression);
  // Waits until a change of the page's elements makes it `wanted`, or for half a minute; the last
  // value.
  nlohmann::json wait_for(const std::string& expression, const nlohmann::json& wanted);
  // Any command of the protocol, for the page.
  nlohmann::json tell(const std::string& method, const nlohmann::json& parameters = {});

  void drag(int x, int y, int dx, int dy);  // and rests before it lets go
  void click(int x, int y, int times = 1);
  void wheel(int x, int y, int pixels);  // above 0: towards the user
  void key(const std::string& name, const std::string& text = {});
  void save_picture(const std::string& path);

 private:
  nlohmann::json call(const std::string& method, const nlohmann::json& parameters,
                      const std::string& session);
  void mouse(const std::string& type, int x, int y, const nlohmann::json& more = {});

  std::string home_;  // its profile, which goes with it
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string received_;
  std::string session_;
  int calls_ = 0;
};

}  // namespace apps_test
