// SPDX-License-Identifier: Apache-2.0
// The calls that POSIX makes points of cancellation, each by a thread that has been cancelled
// before it and where there is nothing to wait for; open(), which waits for another thread to open
// the other end of a named pipe; and waits of a thread that has been cancelled and goes on.
// Natively, and as it is under `strata pthread`. Status 0 if all is right.
#include <aio.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <thread>

#include "checks.hpp"

namespace {

using namespace pthread_programs;

struct call {
  const char* name;
  std::function<void()> make;
  bool goes_on = false;
};

void* make_cancelled(void* argument) {
  auto& c = *static_cast<call*>(argument);
  pthread_cancel(pthread_self());
  c.make();
  c.goes_on = true;
  return nullptr;
}

void is_point(const char* name, std::function<void()> make) {
  call c{name, std::move(make)};
  pthread_t thread{};
  void* result = nullptr;
  SAME(pthread_create(&thread, nullptr, make_cancelled, &c), 0);
  SAME(pthread_join(thread, &result), 0);
  if (c.goes_on || result != PTHREAD_CANCELED)
    std::printf("%s is no point of cancellation\n", name);
  SAME(c.goes_on, false);
}

// A folder of its own, and what is in there.
class folder {
 public:
  folder() { SAME(mkdtemp(path_.data()) != nullptr, true); }
  ~folder() {
    for (const char* name : {"file", "pipe"}) unlink(at(name).c_str());
    rmdir(path_.data());
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  [[nodiscard]] std::string at(const char* name) const {
    return path_.data() + ("/" + std::string(name));
  }

 private:
  std::array<char, 32> path_{"/tmp/strata_points_XXXXXX"};
};

void files() {
  const folder in;
  const std::string path = in.at("file");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  char byte = 'x';
  iovec part{&byte, 1};
  SAME(write(fd, &byte, 1), 1);
  is_point("open", [&] { (void)open(path.c_str(), O_RDONLY); });
  is_point("openat", [&] { (void)openat(AT_FDCWD, path.c_str(), O_RDONLY); });
  is_point("creat", [&] { (void)creat(path.c_str(), 0600); });
  is_point("read", [&] { (void)!read(fd, &byte, 1); });
  is_point("readv", [&] { (void)!readv(fd, &part, 1); });
  is_point("pread", [&] { (void)!pread(fd, &byte, 1, 0); });
  is_point("write", [&] { (void)!write(fd, &byte, 1); });
  is_point("writev", [&] { (void)!writev(fd, &part, 1); });
  is_point("pwrite", [&] { (void)!pwrite(fd, &byte, 1, 0); });
  is_point("fsync", [&] { fsync(fd); });
  is_point("fdatasync", [&] { fdatasync(fd); });
  is_point("fcntl", [&] {
    struct flock whole {};
    whole.l_type = F_RDLCK;
    fcntl(fd, F_SETLKW, &whole);
  });
  is_point("lockf", [&] { (void)!lockf(fd, F_LOCK, 1); });
  is_point("close", [&] { close(fd); });
  SAME(fcntl(fd, F_GETFD) >= 0, true);  // which has not begun
  close(fd);
  void* const page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  is_point("msync", [&] { msync(page, 4096, MS_ASYNC); });
  munmap(page, 4096);
}

void sockets() {
  std::array<int, 2> both{};
  char byte = 'x';
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  SAME(socketpair(AF_UNIX, SOCK_STREAM, 0, both.data()), 0);
  SAME(write(both[1], "12345678", 8), 8);
  const int fd = both[0];
  is_point("recv", [&] { recv(fd, &byte, 1, 0); });
  is_point("recvfrom", [&] { recvfrom(fd, &byte, 1, 0, nullptr, nullptr); });
  is_point("recvmsg", [&] { recvmsg(fd, &message, 0); });
  is_point("send", [&] { send(fd, &byte, 1, 0); });
  is_point("sendto", [&] { sendto(fd, &byte, 1, 0, nullptr, 0); });
  is_point("sendmsg", [&] { sendmsg(fd, &message, 0); });
  is_point("accept", [&] { accept(fd, nullptr, nullptr); });
  is_point("connect", [&] {
    sockaddr nowhere{};
    nowhere.sa_family = AF_UNIX;
    connect(fd, &nowhere, sizeof nowhere);
  });
  const timespec none{0, 0};
  is_point("poll", [&] {
    pollfd one{fd, POLLIN, 0};
    poll(&one, 1, 0);
  });
  is_point("select", [&] {
    timeval now{0, 0};
    select(0, nullptr, nullptr, nullptr, &now);
  });
  is_point("pselect", [&] { pselect(0, nullptr, nullptr, nullptr, &none, nullptr); });
  close(both[0]);
  close(both[1]);
}

// What it asks for has yet to come: else the C library's looks at nothing.
void aio() {
  std::array<int, 2> ends{};
  char byte = 0;
  SAME(pipe(ends.data()), 0);
  aiocb request{};
  request.aio_fildes = ends[0];
  request.aio_buf = &byte;
  request.aio_nbytes = 1;
  const aiocb* const all[] = {&request};
  SAME(aio_read(&request), 0);
  is_point("aio_suspend", [&] { aio_suspend(all, 1, nullptr); });
  const timespec a_moment{0, 1'000'000};
  SAME(aio_suspend(all, 1, &a_moment), -1);
  SAME(errno, EAGAIN);
  std::thread waits([&] {
    SAME(aio_suspend(all, 1, nullptr), 0);
    SAME(aio_return(&request), 1);
  });
  std::thread writes([&] { SAME(write(ends[1], "x", 1), 1); });
  waits.join();
  writes.join();
  SAME(byte, 'x');
  close(ends[0]);
  close(ends[1]);
}

void others() {
  const timespec none{0, 0};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  is_point("waitpid", [] { waitpid(-1, nullptr, WNOHANG); });
  is_point("wait", [] { wait(nullptr); });
  is_point("waitid", [] {
    siginfo_t found{};
    waitid(P_ALL, 0, &found, WEXITED | WNOHANG);
  });
  is_point("system", [] { (void)!system("exit 3"); });
  const int queue = msgget(IPC_PRIVATE, 0600);
  struct {
    long kind = 1;
    char text = 'x';
  } mail;
  is_point("msgsnd", [&] { msgsnd(queue, &mail, 1, IPC_NOWAIT); });
  is_point("msgrcv", [&] { (void)msgrcv(queue, &mail, 1, 0, IPC_NOWAIT); });
  msgctl(queue, IPC_RMID, nullptr);
  const std::string name = "/strata_points_" + std::to_string(getpid());
  mq_attr size{};
  size.mq_maxmsg = 2;
  size.mq_msgsize = 8;
  const mqd_t messages = mq_open(name.c_str(), O_RDWR | O_CREAT | O_NONBLOCK, 0600, &size);
  if (messages != -1) {
    std::array<char, 8> text{};
    is_point("mq_send", [&] { mq_send(messages, text.data(), 1, 0); });
    is_point("mq_timedsend", [&] { mq_timedsend(messages, text.data(), 1, 0, &none); });
    is_point("mq_receive", [&] { mq_receive(messages, text.data(), text.size(), nullptr); });
    is_point("mq_timedreceive",
             [&] { mq_timedreceive(messages, text.data(), text.size(), nullptr, &none); });
    mq_close(messages);
    mq_unlink(name.c_str());
  }
  sem_t semaphore;
  sem_init(&semaphore, 0, 4);
  is_point("sem_wait", [&] { sem_wait(&semaphore); });
  is_point("sem_timedwait", [&] { sem_timedwait(&semaphore, &none); });
  sem_destroy(&semaphore);
  is_point("nanosleep", [&] { nanosleep(&none, nullptr); });
  is_point("clock_nanosleep", [&] { clock_nanosleep(CLOCK_MONOTONIC, 0, &none, nullptr); });
  is_point("usleep", [] { usleep(0); });
  is_point("sigtimedwait", [&] { sigtimedwait(&set, nullptr, &none); });
  is_point("sigwaitinfo", [&] { sigwaitinfo(&set, nullptr); });
  is_point("sigwait", [&] {
    int number = 0;
    sigwait(&set, &number);
  });
  is_point("sigsuspend", [&] { sigsuspend(&set); });
  is_point("pause", [] { pause(); });
  is_point("pthread_testcancel", [] { pthread_testcancel(); });
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
  const auto waits = [&] {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push([](void* m) { pthread_mutex_unlock(static_cast<pthread_mutex_t*>(m)); },
                         &mutex);
    pthread_cond_timedwait(&cond, &mutex, &none);
    pthread_cleanup_pop(1);
  };
  is_point("pthread_cond_timedwait", waits);
  sem_t ends;
  sem_init(&ends, 0, 0);
  std::thread other([&] { sem_wait(&ends); });
  is_point("pthread_join", [&] { pthread_join(other.native_handle(), nullptr); });
  sem_post(&ends);
  other.join();
  sem_destroy(&ends);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// Each end is opened by a thread that waits for the other one.
void named_pipe() {
  const folder in;
  const std::string path = in.at("pipe");
  SAME(mkfifo(path.c_str(), 0600), 0);
  for (const int flags : {0, O_CLOEXEC}) {
    std::thread reads([&] {
      char byte = 0;
      const int fd = open(path.c_str(), O_RDONLY | flags);
      SAME(fd >= 0, true);
      SAME(read(fd, &byte, 1), 1);
      SAME(byte, 'p');
      close(fd);
    });
    std::thread writes([&] {
      const int fd = openat(AT_FDCWD, path.c_str(), O_WRONLY | flags);
      SAME(fd >= 0, true);
      SAME(write(fd, "p", 1), 1);
      close(fd);
    });
    reads.join();
    writes.join();
  }
  pthread_t waits_for_ever{};
  void* result = nullptr;
  const auto wait = [](void* p) -> void* {
    open(static_cast<const std::string*>(p)->c_str(), O_WRONLY);
    return nullptr;
  };
  SAME(pthread_create(&waits_for_ever, nullptr, wait, const_cast<std::string*>(&path)), 0);
  SAME(pthread_cancel(waits_for_ever), 0);
  SAME(pthread_join(waits_for_ever, &result), 0);
  SAME(result == PTHREAD_CANCELED, true);
}

// Whose cancellation is put off, or has begun, waits as ever for what the kernel waits for.
void await_child() {
  const pid_t child = fork();
  // This only gives a wait that ends too soon the time to do so: nothing else depends on it.
  const timespec a_little{0, 20'000'000};
  if (child == 0) {
    nanosleep(&a_little, nullptr);
    _exit(7);
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(WIFEXITED(status) && WEXITSTATUS(status) == 7, true);
}
void waits_of_cancelled() {
  pthread_t thread{};
  void* result = nullptr;
  const auto wait = [](void*) -> void* {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    pthread_cancel(pthread_self());
    await_child();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    pthread_cleanup_push([](void*) { await_child(); }, nullptr);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return nullptr;
  };
  SAME(pthread_create(&thread, nullptr, wait, nullptr), 0);
  SAME(pthread_join(thread, &result), 0);
  SAME(result == PTHREAD_CANCELED, true);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::array parts{part{"files", files},
                             part{"sockets", sockets},
                             part{"aio", aio},
                             part{"others", others},
                             part{"named_pipe", named_pipe},
                             part{"waits_of_cancelled", waits_of_cancelled}};
  run_parts(parts, argc, argv);
  return status_of_all();
}
