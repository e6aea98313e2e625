// SPDX-License-Identifier: Apache-2.0
#include "gateway/spawn/piped_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

extern char** environ;

namespace rocegw {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

bool Make(Pipe& pipe) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  pipe = {UniqueFd(ends[0]), UniqueFd(ends[1])};
  return true;
}

bool MakeNonBlocking(const UniqueFd& fd) {
  return fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK) == 0;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Start state of a program: the three streams and no other descriptor of ours, default signal
// handling (daemons block those that they read), its own process group.
class Beginning {
 public:
  Beginning(const Pipe& input, const Pipe& output, const Pipe& error) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_adddup2(&actions, input.read.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.write.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, error.write.get(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  }
  ~Beginning() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

StatusOr<PipedProgram> StartWithPipes(const std::vector<std::string>& words,
                                      const std::vector<std::string>* environment) {
  Pipe input;
  Pipe output;
  Pipe error;
  if (!Make(input) || !Make(output) || !Make(error) || !MakeNonBlocking(input.write) ||
      !MakeNonBlocking(output.read) || !MakeNonBlocking(error.read)) {
    return Status(errno, "no pipe for a program");
  }
  const Beginning beginning(input, output, error);
  std::vector<char*> variables;
  if (environment != nullptr) variables = Pointers(*environment);
  PipedProgram program;
  const int failed =
      posix_spawnp(&program.pid, words[0].c_str(), &beginning.actions, &beginning.attributes,
                   Pointers(words).data(), environment == nullptr ? environ : variables.data());
  if (failed != 0) return Status(failed, "cannot start " + words[0]);
  program.input = std::move(input.write);
  program.output = std::move(output.read);
  program.error = std::move(error.read);
  return program;
}

}  // namespace rocegw
