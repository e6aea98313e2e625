// SPDX-License-Identifier: Apache-2.0
// run_with_fake_daemon LIBRARY PROGRAM [ARGUMENTS]: runs a program with the library preloaded, or
// with the directory LIBRARY before the system's, against a scripted daemon, and exits with the
// program's status. For tests of the library with installed programs.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/unit/client/daemon/fake_daemon.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s LIBRARY PROGRAM [ARGUMENTS]\n", argv[0]);
    return 2;
  }
  rocegw::testing::FakeDaemon daemon;
  const pid_t child = fork();
  if (child == 0) {
    setenv("ROCEGW_SOCKET", daemon.socket_path().c_str(), 1);
    setenv("ROCEGW_DEBUG", "1", 1);
    struct stat about = {};
    const bool folder = stat(argv[1], &about) == 0 && S_ISDIR(about.st_mode);
    setenv(folder ? "LD_LIBRARY_PATH" : "LD_PRELOAD", argv[1], 1);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
