#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <strata/blocking.hpp>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>
#include <string>
#include <vector>

// Sends back what comes, until the other side is done.
void converse(int connection) {
  char text[1024];
  for (;;) {
    const ssize_t n = strata::io::recv(connection, text, sizeof text, 0);
    if (n <= 0) break;
    const auto bytes = static_cast<std::size_t>(n);
    if (strata::io::send_all(connection, text, bytes, MSG_NOSIGNAL) != bytes) break;
  }
  close(connection);
}

// A thread for each connection, so many at a time.
void serve(int listener) {
  constexpr int most = 1000;
  strata::counting_semaphore<> places(most);
  for (;;) {
    const int connection = strata::io::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) break;  // shut down
    places.acquire();
    strata::thread([connection, &places] {
      converse(connection);
      places.release();
    }).detach();
  }
  for (int i = 0; i < most; ++i) places.acquire();  // all have ended
}

bool is_echoed(const sockaddr_in& server, const std::string& text) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (strata::io::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0 &&
      strata::io::send_all(fd, text.data(), text.size(), MSG_NOSIGNAL) == text.size()) {
    char some[64];
    while (answer.size() < text.size()) {
      const ssize_t n = strata::io::recv(fd, some, sizeof some, 0);
      if (n <= 0) break;
      answer.append(some, static_cast<std::size_t>(n));
    }
  }
  close(fd);
  return answer == text;
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  return runtime.run([] {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);  // at a port that is free
    auto* const address = reinterpret_cast<sockaddr*>(&here);
    socklen_t bytes = sizeof here;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, address, bytes) != 0 || listen(listener, 100) != 0 ||
        getsockname(listener, address, &bytes) != 0) {
      std::perror("echo");
      return 1;
    }
    strata::thread server(serve, listener);
    std::atomic<int> echoed{0};
    std::vector<strata::thread> clients;
    for (int i = 0; i < 100; ++i) {
      clients.emplace_back([&, i] {
        if (is_echoed(here, "hello from client " + std::to_string(i))) ++echoed;
      });
    }
    for (strata::thread& client : clients) client.join();
    shutdown(listener, SHUT_RDWR);  // which ends accept4()
    server.join();
    close(listener);
    std::printf("%d echoes\n", echoed.load());
    return 0;
  });
}
