// SPDX-License-Identifier: Apache-2.0
#include "browser.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace apps_test {

using nlohmann::json;

namespace {

// Three bytes for each four characters.
std::string from_base64(const std::string& text) {
  static const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string::npos) break;
    bits = bits << 6 | static_cast<unsigned>(digit);
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return bytes;
}

}  // namespace

std::optional<std::string> browser::installed() {
  for (const char* const path : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                                 "/usr/bin/google-chrome", "/snap/bin/chromium"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

browser::browser(const std::string& program, int width, int height) {
  std::string name = (std::filesystem::temp_directory_path() / "browser_XXXXXX").string();
  home_ = ::mkdtemp(name.data());
  // As root there is no sandbox; the page is ours.
  const std::vector<std::string> words{program,
                                       "--headless=new",
                                       "--no-sandbox",
                                       "--disable-gpu",
                                       "--disable-dev-shm-usage",
                                       "--no-first-run",
                                       "--remote-debugging-pipe",
                                       "--user-data-dir=" + home_,
                                       "about:blank"};
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  std::array<int, 2> there{}, back{};
  if (::pipe2(there.data(), O_CLOEXEC) != 0 || ::pipe2(back.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);  // its helpers end with it
    const int quiet = ::open("/dev/null", O_RDWR);
    ::dup2(quiet, 0);
    ::dup2(quiet, 1);
    ::dup2(quiet, 2);
    // The protocol's numbers. Via larger ones: the pipes may have them in the other order.
    const int in = ::fcntl(there[0], F_DUPFD, 100), out = ::fcntl(back[1], F_DUPFD, 100);
    ::dup2(in, 3);
    ::dup2(out, 4);
    ::close(in);
    ::close(out);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(there[0]);
  ::close(back[1]);
  to_ = there[1];
  from_ = back[0];
  const json target = call("Target.createTarget", {{"url", "about:blank"}}, "");
  session_ =
      call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}}, "")
          .at("sessionId");
  tell("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
}

browser::~browser() {
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::close(to_);
  ::close(from_);
  // Its helpers may write a moment longer.
  std::error_code problem;
  for (int i = 0; i < 100 && std::filesystem::exists(home_, problem); ++i)
    std::filesystem::remove_all(home_, problem);
}

json browser::call(const std::string& method, const json& parameters, const std::string& session) {
  const int number = ++calls_;
  json order{{"id", number}, {"method", method}};
  if (!parameters.is_null()) order["params"] = parameters;
  if (!session.empty()) order["sessionId"] = session;
  const std::string text = order.dump() + '\0';
  if (::write(to_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the browser takes no orders");
  for (;;) {
    const std::size_t end = received_.find('\0');
    if (end == std::string::npos) {
      std::array<char, 65'536> bytes;
      pollfd ready{from_, POLLIN, 0};
      const ssize_t n =
          ::poll(&ready, 1, 60'000) == 1 ? ::read(from_, bytes.data(), bytes.size()) : -1;
      if (n <= 0) throw std::runtime_error("the browser does not answer to " + method);
      received_.append(bytes.data(), static_cast<std::size_t>(n));
      continue;
    }
    const json said = json::parse(received_.substr(0, end));
    received_.erase(0, end + 1);
    if (said.value("id", 0) != number) continue;  // an event
    if (said.contains("error")) throw std::runtime_error(method + ": " + said["error"].dump());
    return said.at("result");
  }
}

json browser::tell(const std::string& method, const json& parameters) {
  return call(method, parameters, session_);
}

void browser::open(const std::string& address) { tell("Page.navigate", {{"url", address}}); }

json browser::value(const std::string& expression) {
  const json r =
      tell("Runtime.evaluate",
           {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  return r.at("result").value("value", json());
}

json browser::wait_for(const std::string& expression, const json& wanted) {
  // The page looks itself, whenever something in it has changed, and answers when it is so.
  return value(
      "new Promise((answer) => {"
      "  const wanted = JSON.stringify(" +
      wanted.dump() +
      ");"
      "  const look = () => { try { return " +
      expression +
      "; } catch { return null; } };"
      "  const end = () => { watcher.disconnect(); clearTimeout(limit); answer(look()); };"
      "  const end_if_so = () => { if (JSON.stringify(look()) === wanted) end(); };"
      "  const watcher = new MutationObserver(end_if_so);"
      "  const limit = setTimeout(end, 30000);"
      "  watcher.observe(document, {subtree: true, childList: true, attributes: true,"
      "                             characterData: true});"
      "  end_if_so();"
      "})");
}

void browser::mouse(const std::string& type, int x, int y, const json& more) {
  json parameters{{"type", type}, {"x", x}, {"y", y}};
  if (!more.is_null()) parameters.update(more);
  tell("Input.dispatchMouseEvent", parameters);
}

void browser::drag(int x, int y, int dx, int dy) {
  // The rest is longer than the page remembers a movement, so that nothing is thrown. It goes by
  // the times that come with the events: nobody has to wait.
  const std::chrono::duration<double> end_s = std::chrono::system_clock::now().time_since_epoch();
  const double moves_s = end_s.count() - 0.15;
  mouse("mousePressed", x, y,
        {{"button", "left"}, {"buttons", 1}, {"clickCount", 1}, {"timestamp", moves_s}});
  constexpr int steps = 5;
  for (int i = 1; i <= steps; ++i)
    mouse("mouseMoved", x + dx * i / steps, y + dy * i / steps,
          {{"button", "left"}, {"buttons", 1}, {"timestamp", moves_s}});
  mouse("mouseReleased", x + dx, y + dy,
        {{"button", "left"}, {"clickCount", 1}, {"timestamp", end_s.count()}});
}

void browser::click(int x, int y, int times) {
  for (int i = 1; i <= times; ++i) {
    mouse("mousePressed", x, y, {{"button", "left"}, {"buttons", 1}, {"clickCount", i}});
    mouse("mouseReleased", x, y, {{"button", "left"}, {"clickCount", i}});
  }
}

void browser::wheel(int x, int y, int pixels) {
  mouse("mouseWheel", x, y, {{"deltaX", 0}, {"deltaY", pixels}});
}

void browser::key(const std::string& name, const std::string& text) {
  json down{{"type", "keyDown"}, {"key", name}};
  if (!text.empty()) down["text"] = text;
  tell("Input.dispatchKeyEvent", down);
  tell("Input.dispatchKeyEvent", {{"type", "keyUp"}, {"key", name}});
}

void browser::save_picture(const std::string& path) {
  const json r = tell("Page.captureScreenshot", {{"format", "png"}});
  std::ofstream(path, std::ios::binary) << from_base64(r.at("data").get<std::string>());
}

}  // namespace apps_test
