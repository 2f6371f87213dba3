// SPDX-License-Identifier: Apache-2.0
// Calls that wait in the kernel, as the C library has them. A thread that is not the only one is
// suspended meanwhile, and a kernel thread that takes no signals waits in its place.
#pragma once
#include <aio.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include <ctime>

namespace strata::preload {

// wait(), waitpid(), wait3(), wait4(), waitid().
pid_t await_any(int* status);
pid_t await_child(pid_t which, int* status, int options);
pid_t await_any_and_usage(int* status, int options, rusage* usage);
pid_t await_child_and_usage(pid_t which, int* status, int options, rusage* usage);
int await_child_by_id(idtype_t kind, id_t which, siginfo_t* found, int options);
// flock(), lockf(), and fcntl(), which waits for locks alone: they are the process's, or the open
// file's.
int lock_file(int fd, int operation);
int lock_part(int fd, int command, off_t bytes);
int control_file(int fd, int command, void* argument);
// tcdrain().
int await_written(int fd);
// aio_suspend().
int await_requests(const aiocb* const requests[], int count, const timespec* timeout);
// semop(), semtimedop(), msgsnd(), msgrcv().
int change_semaphores(int id, sembuf* changes, size_t count);
int change_semaphores_within(int id, sembuf* changes, size_t count, const timespec* timeout);
int send_to_queue(int id, const void* message, size_t bytes, int flags);
ssize_t receive_from_queue(int id, void* message, size_t bytes, long kind, int flags);
// mq_send(), mq_timedsend(), mq_receive(), mq_timedreceive().
int put_message(mqd_t queue, const char* message, size_t bytes, unsigned priority);
int put_message_until(mqd_t queue, const char* message, size_t bytes, unsigned priority,
                      const timespec* until);
ssize_t take_message(mqd_t queue, char* message, size_t bytes, unsigned* priority);
ssize_t take_message_until(mqd_t queue, char* message, size_t bytes, unsigned* priority,
                           const timespec* until);

}  // namespace strata::preload
