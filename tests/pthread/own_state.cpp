// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of strata, and whose threads have a floating-point environment, a
// name, a signal stack and an affinity each, that of the programs that they start: run natively,
// and as it is under `strata pthread`. Status 0 if all are right. It has no thread-local variables:
// its threads may go on on other workers where no library has any either.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::atomic<int> wrong{0};

void same(long got, long wanted, const char* what) {
  if (got != wanted && wrong.fetch_add(1) < 20)
    std::printf("wrong: %s is %ld, not %ld\n", what, got, wanted);
}

// Where threads meet; none runs on alone.
constexpr int threads = 12;
pthread_barrier_t barrier;
sem_t one_at_a_time;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void wait_somehow(int round) {
  switch (round % 5) {
    case 0:
      pthread_barrier_wait(&barrier);
      break;
    case 1:
      sched_yield();
      break;
    case 2:
      sem_wait(&one_at_a_time);
      sched_yield();
      sem_post(&one_at_a_time);
      break;
    case 3:
      pthread_mutex_lock(&mutex);
      usleep(1);  // nothing waits for the time: sleeping is one of the calls that suspend
      pthread_mutex_unlock(&mutex);
      break;
    default: {
      pthread_t t;
      pthread_create(
          &t, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
      pthread_join(t, nullptr);
    }
  }
}

// What a thread computes with, as the mode has it.
struct third {
  volatile double one = 1;
  volatile double three = 3;
  volatile long double long_one = 1;
  volatile long double long_three = 3;
  // At this place, and nowhere later.
  double minus() {
    const volatile double now = -one / three;
    return now;
  }
  long double long_minus() {
    const volatile long double now = -long_one / long_three;
    return now;
  }
};

constexpr std::array modes{FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
constexpr std::array exceptions{0, FE_DIVBYZERO, FE_INVALID, FE_DIVBYZERO | FE_INVALID};

void* rounds(void* argument) {
  const auto me = static_cast<std::size_t>(reinterpret_cast<std::intptr_t>(argument));
  const int mode = modes[me % modes.size()];
  const int occurred = exceptions[me / modes.size() % exceptions.size()];
  same(std::fesetround(mode), 0, "fesetround()");
  third t;
  const double expected = t.minus();
  const long double long_expected = t.long_minus();
  for (int round = 0; round < 60; ++round) {
    std::feclearexcept(FE_ALL_EXCEPT);
    std::feraiseexcept(occurred);
    wait_somehow(round);
    same(std::fetestexcept(FE_ALL_EXCEPT), occurred, "what has occurred, after a wait");
    same(std::fegetround(), mode, "mode after a wait");
    same(t.minus() == expected, true, "a third after a wait is what it was");
    same(t.long_minus() == long_expected, true, "a long third after a wait is what it was");
  }
  return nullptr;
}

// Each makes the next, and has another mode by the time that one begins.
void* inherits(void* argument) {
  const auto depth = static_cast<std::size_t>(reinterpret_cast<std::intptr_t>(argument));
  same(std::fegetround(), modes[depth % modes.size()], "mode of the maker");
  same(std::fetestexcept(FE_ALL_EXCEPT), exceptions[depth % exceptions.size()],
       "what had occurred to the maker");
  if (depth == 0) return nullptr;
  std::fesetround(modes[(depth - 1) % modes.size()]);
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(exceptions[(depth - 1) % exceptions.size()]);
  pthread_t t;
  pthread_create(&t, nullptr, &inherits, reinterpret_cast<void*>(depth - 1));
  std::fesetround(modes[(depth + 1) % modes.size()]);
  std::feclearexcept(FE_ALL_EXCEPT);
  pthread_join(t, nullptr);
  same(std::fegetround(), modes[(depth + 1) % modes.size()], "mode after a join");
  return nullptr;
}

// Before main(), as what -ffast-math links in does it.
[[gnu::constructor]] void begin_early() { std::fesetround(FE_DOWNWARD); }

void floating_point() {
  same(std::fegetround(), FE_DOWNWARD, "mode of main() from before it");
  std::fesetround(FE_TONEAREST);
  pthread_barrier_init(&barrier, nullptr, threads);
  sem_init(&one_at_a_time, 0, 1);
  std::vector<pthread_t> all(threads);
  for (int i = 0; i < threads; ++i)
    pthread_create(&all[static_cast<std::size_t>(i)], nullptr, &rounds,
                   reinterpret_cast<void*>(std::intptr_t{i}));
  for (const pthread_t t : all) pthread_join(t, nullptr);
  same(std::fegetround(), FE_TONEAREST, "mode of main() after all");
  constexpr std::intptr_t depth = 8;
  std::feclearexcept(FE_ALL_EXCEPT);
  pthread_t t;
  pthread_create(&t, nullptr, &inherits, reinterpret_cast<void*>(depth));
  pthread_join(t, nullptr);
}

// ---- what Linux keeps for kernel threads ----

struct process {
  cpu_set_t cpus;
  std::array<char, 16> name{};
} before;

sem_t has_changed, has_looked;

std::string name_here() {
  std::array<char, 16> name{};
  same(prctl(PR_GET_NAME, name.data(), 0, 0, 0), 0, "prctl(PR_GET_NAME)");
  return name.data();
}

int first_of(const cpu_set_t& cpus) {
  int i = 0;
  while (!CPU_ISSET(i, &cpus)) ++i;
  return i;
}

void* changes(void*) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first_of(before.cpus), &one);
  same(sched_setaffinity(0, sizeof one, &one), 0, "sched_setaffinity(0)");
  same(sched_setaffinity(gettid(), sizeof one, &one), 0, "sched_setaffinity(gettid())");
  CPU_ZERO(&one);
  same(sched_setaffinity(0, sizeof one, &one), -1, "sched_setaffinity() of no processor");
  same(errno, EINVAL, "its error");
  same(prctl(PR_SET_NAME, "much too long for a name", 0, 0, 0), 0, "prctl(PR_SET_NAME)");
  std::array<char, 16> name{};
  same(pthread_getname_np(pthread_self(), name.data(), name.size()), 0, "pthread_getname_np()");
  same(std::strcmp(name.data(), "much too long f"), 0, "its own name is another");
  same(name_here() == "much too long f", true, "the name is what prctl() has set");
  sem_post(&has_changed);
  sem_wait(&has_looked);
  return nullptr;
}

void* looks(void*) {
  sem_wait(&has_changed);
  cpu_set_t mine;
  same(sched_getaffinity(0, sizeof mine, &mine), 0, "sched_getaffinity()");
  same(CPU_EQUAL(&mine, &before.cpus), 1, "another thread's affinity stays");
  same(name_here() == before.name.data(), true, "another thread's name stays");
  sem_post(&has_looked);
  return nullptr;
}

std::string name_of_process() {
  std::array<char, 32> line{};
  std::FILE* const f = std::fopen("/proc/self/comm", "re");
  if (f == nullptr || std::fgets(line.data(), line.size(), f) == nullptr)
    same(0, 1, "/proc/self/comm");
  if (f != nullptr) std::fclose(f);
  return line.data();
}

void in_new_thread(void* (*what)(void*), void* argument) {
  pthread_t t{};
  pthread_create(&t, nullptr, what, argument);
  pthread_join(t, nullptr);
}

// Handlers of others must not run on what a thread has given for its own, once that has ended.
std::array<char, 65536> signal_stack;

void* sets_signal_stack(void* gives_it_up) {
  stack_t mine{};
  stack_t told{};
  mine.ss_sp = signal_stack.data();
  mine.ss_size = signal_stack.size();
  same(sigaltstack(&mine, nullptr), 0, "sigaltstack()");
  if (gives_it_up != nullptr) mine.ss_flags = SS_DISABLE;
  same(sigaltstack(&mine, &told), 0, "sigaltstack() once more");
  same(told.ss_sp == signal_stack.data() && told.ss_flags == 0, true, "its own signal stack");
  mine.ss_size = 1;
  mine.ss_flags = 0;
  same(sigaltstack(&mine, nullptr), -1, "sigaltstack() of one byte");
  same(errno, ENOMEM, "its error");
  return nullptr;
}

void* tells_signal_stack(void* told) {
  same(sigaltstack(nullptr, static_cast<stack_t*>(told)), 0, "sigaltstack(nullptr)");
  return nullptr;
}

void signal_stacks() {
  stack_t first{};
  in_new_thread(&tells_signal_stack, &first);
  for (void* const gives_it_up : {static_cast<void*>(nullptr), static_cast<void*>(&first)}) {
    stack_t now{};
    in_new_thread(&sets_signal_stack, gives_it_up);
    in_new_thread(&tells_signal_stack, &now);
    same(now.ss_flags, first.ss_flags, "a later thread's signal stack is as an earlier one's");
    same(now.ss_sp == signal_stack.data(), false, "a later thread has the signal stack of another");
  }
}

// ---- and what programs have that a thread starts ----

constexpr const char* me = "/proc/self/exe";

// As one of those programs: status 0 if it has so many processors, and this one.
int look_at_processors(char** arguments) {
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_ISSET(std::atoi(arguments[1]), &now) &&
                 CPU_COUNT(&now) == std::atoi(arguments[2])
             ? 0
             : 1;
}

struct program {
  std::string first;
  std::string count;
  std::array<char*, 4> arguments{};

  explicit program(const cpu_set_t& cpus)
      : first(std::to_string(first_of(cpus))), count(std::to_string(CPU_COUNT(&cpus))) {
    arguments = {const_cast<char*>(me), first.data(), count.data(), nullptr};
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;
};

int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return status;
}

[[noreturn]] void become(const program& p) {
  execv(me, p.arguments.data());
  _exit(2);
}

// The same program, by the functions that take its arguments one after the other, and by its file.
[[noreturn]] void become_by(int way, const program& p, int file) {
  const auto& all = p.arguments;
  switch (way) {
    case 0:
      execl(me, all[0], all[1], all[2], nullptr);
      break;
    case 1:
      execlp(me, all[0], all[1], all[2], nullptr);
      break;
    case 2:
      execle(me, all[0], all[1], all[2], nullptr, environ);
      break;
    default:
      fexecve(file, p.arguments.data(), environ);
  }
  _exit(2);
}

pid_t child_by(int way, const program& p, int file) {
  const pid_t child = vfork();
  if (child == 0) become_by(way, p, file);
  return child;
}

// A shell's /proc/self is the program that it starts.
std::string path_of_me() {
  std::array<char, 4096> path{};
  const ssize_t bytes = readlink(me, path.data(), path.size());
  return bytes > 0 ? std::string(path.data(), static_cast<std::size_t>(bytes)) : "";
}

// By every way to start one.
void* programs_have(void* cpus) {
  program p(*static_cast<const cpu_set_t*>(cpus));
  pid_t child = -1;
  same(posix_spawn(&child, me, nullptr, nullptr, p.arguments.data(), environ), 0, "posix_spawn()");
  same(status_of(child), 0, "posix_spawn()'s program");
  const std::string line = "'" + path_of_me() + "' " + p.first + " " + p.count;
  same(std::system(line.c_str()), 0, "system()'s program");
  std::FILE* const f = popen(line.c_str(), "r");
  same(f != nullptr ? pclose(f) : -1, 0, "popen()'s program");
  child = fork();
  if (child == 0) become(p);
  same(status_of(child), 0, "fork()'s program");
  child = vfork();
  if (child == 0) become(p);
  same(status_of(child), 0, "vfork()'s program");
  const int file = open(me, O_RDONLY | O_CLOEXEC);
  for (int way = 0; way < 4; ++way)
    same(status_of(child_by(way, p, file)), 0,
         "the program of another function of vfork()'s child");
  close(file);
  return nullptr;
}

// Where threads run on several kernel threads each may be bound to a processor, which is not what
// its programs have: here it is not the process's first that starts them, if there is another.
std::atomic<bool> has_begun_elsewhere{false};

void* programs_have_elsewhere(void* cpus) {
  if (gettid() != getpid() && !has_begun_elsewhere.exchange(true)) programs_have(cpus);
  return nullptr;
}

void programs_of_another_kernel_thread(cpu_set_t& cpus) {
  constexpr int tries = 200;
  std::array<pthread_t, 4> some{};
  for (int i = 0; i < tries && !has_begun_elsewhere; ++i) {
    for (pthread_t& t : some) pthread_create(&t, nullptr, &programs_have_elsewhere, &cpus);
    // Ours is busy for a while: others find them.
    for (int looks = 0; looks < 100'000 && !has_begun_elsewhere; ++looks) {
    }
    for (const pthread_t t : some) pthread_join(t, nullptr);
  }
}

// The child of a vfork() is none of our threads, though it has the parent's memory. So it has what
// it has set last.
void child_changes_itself(const cpu_set_t& first, const cpu_set_t& last) {
  program p(last);
  const std::string name = name_here();
  const pid_t child = vfork();
  if (child == 0) {
    sched_setaffinity(0, sizeof first, &first);
    sched_setaffinity(0, sizeof last, &last);
    prctl(PR_SET_NAME, "child", 0, 0, 0);
    become(p);
  }
  same(status_of(child), 0, "the program of a child that has changed its affinity");
  same(name_here() == name, true, "the name is what it was before a child has changed its own");
}

void* starts_programs(void*) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first_of(before.cpus), &one);
  programs_have(&before.cpus);
  same(sched_setaffinity(0, sizeof one, &one), 0, "sched_setaffinity(0)");
  programs_have(&one);
  child_changes_itself(one, before.cpus);
  child_changes_itself(before.cpus, one);
  programs_have(&one);
  in_new_thread(&programs_have, &one);
  return nullptr;
}

void programs() {
  in_new_thread(&starts_programs, nullptr);
  programs_of_another_kernel_thread(before.cpus);
  programs_have(&before.cpus);
  const pid_t child = fork();
  if (child == 0) {
    starts_programs(nullptr);
    _exit(wrong == 0 ? 0 : 1);
  }
  same(status_of(child), 0, "the same in the child of a fork()");
}

void kernel_thread() {
  same(sched_getaffinity(0, sizeof before.cpus, &before.cpus), 0, "sched_getaffinity()");
  same(prctl(PR_GET_NAME, before.name.data(), 0, 0, 0), 0, "prctl(PR_GET_NAME)");
  sem_init(&has_changed, 0, 0);
  sem_init(&has_looked, 0, 0);
  std::array<pthread_t, 2> both{};
  pthread_create(&both[0], nullptr, &looks, nullptr);
  pthread_create(&both[1], nullptr, &changes, nullptr);
  for (const pthread_t t : both) pthread_join(t, nullptr);
  same(name_of_process() == before.name.data() + std::string("\n"), true,
       "the process's name stays");
  // main()'s is the process's.
  same(prctl(PR_SET_NAME, "another", 0, 0, 0), 0, "prctl(PR_SET_NAME) of main()");
  same(name_of_process() == "another\n", true, "the process has the name of main()");
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) return look_at_processors(arguments);
  floating_point();
  kernel_thread();
  signal_stacks();
  programs();
  std::printf("%d wrong\n", wrong.load());
  return wrong == 0 ? 0 : 1;
}
