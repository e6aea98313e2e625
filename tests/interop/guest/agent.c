// SPDX-License-Identifier: Apache-2.0
// guest_agent: runs commands inside the rxe guest for the test harness. It is the last thing the
// guest's init starts and speaks over one virtio-serial port, so that it works whatever a case does
// to the guest's network. Frames, both ways: u32 payload length, u32 job, u8 type, payload (little
// endian).
//   host to guest: 'R' run payload with /bin/sh -c in its own process group; 'K' send signal
//   payload[0] to the job's group guest to host: 'H' ready; 'O' output of the job (stdout and
//   stderr together); 'X' job ended, payload i32 wait status
// One thread. A malformed frame ends the agent, and with it the guest: the host side is ours, so it
// would be a bug.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { kMaxJobs = 64, kMaxPayload = 1 << 16, kHeader = 9 };

struct Job {
  uint32_t id;
  pid_t pid;   // 0: slot free
  int output;  // master of the job's terminal, -1 once closed
  int ended;   // the process has been waited for
  int status;
};

static struct Job jobs[kMaxJobs];
static int port;

static void Die(const char* what) {
  fprintf(stderr, "guest_agent: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void WriteAll(const void* data, size_t length) {
  const char* p = data;
  while (length > 0) {
    ssize_t n = write(port, p, length);
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      Die("write to the host");
    }
    p += n;
    length -= (size_t)n;
  }
}

static void Send(uint32_t job, char type, const void* payload, uint32_t length) {
  unsigned char header[kHeader];
  memcpy(header, &length, 4);
  memcpy(header + 4, &job, 4);
  header[8] = (unsigned char)type;
  WriteAll(header, sizeof header);
  if (length > 0) WriteAll(payload, length);
}

static void ReadAll(void* data, size_t length) {
  char* p = data;
  while (length > 0) {
    ssize_t n = read(port, p, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) Die("read from the host");
    p += n;
    length -= (size_t)n;
  }
}

static void Start(uint32_t id, const char* command) {
  struct Job* job = NULL;
  for (int i = 0; i < kMaxJobs && job == NULL; ++i) {
    if (jobs[i].pid == 0) job = &jobs[i];
  }
  // A terminal, since programs hold their lines back from a pipe; raw, so that it adds nothing to
  // the output.
  struct termios raw;
  memset(&raw, 0, sizeof raw);
  cfmakeraw(&raw);
  int master;
  int slave;
  if (job == NULL || openpty(&master, &slave, NULL, &raw, NULL) != 0)
    Die("no room for another job");
  fcntl(master, F_SETFD, FD_CLOEXEC);
  fcntl(slave, F_SETFD, FD_CLOEXEC);
  pid_t pid = fork();
  if (pid < 0) Die("fork");
  if (pid == 0) {
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(slave, 1);
    dup2(slave, 2);
    execl("/bin/sh", "sh", "-c", command, (char*)NULL);
    _exit(127);
  }
  setpgid(pid, pid);
  close(slave);
  *job = (struct Job){.id = id, .pid = pid, .output = master};
}

// A job is reported as ended only when its output is drained too, so that nothing is lost between
// the two.
static void Finish(struct Job* job) {
  if (!job->ended || job->output >= 0) return;
  int32_t status = job->status;
  Send(job->id, 'X', &status, sizeof status);
  job->pid = 0;
}

static void Reap(void) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    for (int i = 0; i < kMaxJobs; ++i) {
      if (jobs[i].pid != pid) continue;
      jobs[i].ended = 1;
      jobs[i].status = status;
      Finish(&jobs[i]);
    }
  }
}

static void Handle(void) {
  unsigned char header[kHeader];
  static char payload[kMaxPayload + 1];
  uint32_t length;
  uint32_t id;
  ReadAll(header, sizeof header);
  memcpy(&length, header, 4);
  memcpy(&id, header + 4, 4);
  if (length > kMaxPayload) Die("frame too long");
  ReadAll(payload, length);
  payload[length] = '\0';
  if (header[8] == 'R') {
    Start(id, payload);
    return;
  }
  if (header[8] != 'K' || length != 1) Die("unknown frame");
  for (int i = 0; i < kMaxJobs; ++i) {
    if (jobs[i].pid != 0 && jobs[i].id == id) kill(-jobs[i].pid, payload[0]);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  port = open(argv[1], O_RDWR | O_CLOEXEC);
  if (port < 0) Die(argv[1]);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  signal(SIGPIPE, SIG_IGN);
  int child = signalfd(-1, &mask, SFD_CLOEXEC);
  if (child < 0) Die("signalfd");
  Send(0, 'H', NULL, 0);
  for (;;) {
    struct pollfd fds[kMaxJobs + 2];
    fds[0] = (struct pollfd){.fd = port, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = child, .events = POLLIN};
    for (int i = 0; i < kMaxJobs; ++i) {
      fds[i + 2] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].output : -1, .events = POLLIN};
    }
    if (poll(fds, kMaxJobs + 2, -1) < 0 && errno != EINTR) Die("poll");
    if (fds[1].revents) {
      struct signalfd_siginfo info;
      if (read(child, &info, sizeof info) > 0) Reap();
    }
    for (int i = 0; i < kMaxJobs; ++i) {
      if (!fds[i + 2].revents) continue;
      static char buffer[4096];
      ssize_t n = read(jobs[i].output, buffer, sizeof buffer);
      if (n > 0) {  // otherwise EIO: no process holds the terminal any more
        Send(jobs[i].id, 'O', buffer, (uint32_t)n);
        continue;
      }
      close(jobs[i].output);
      jobs[i].output = -1;
      Finish(&jobs[i]);
    }
    if (fds[0].revents) Handle();
  }
}
