// SPDX-License-Identifier: Apache-2.0
// Start of a process that takes over: by the running daemon on SIGUSR2, in the background by
// --detach, and anew when the daemon that it should replace has ended. Main thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::daemon {

// Command line and environment of this process, as another process of the same program needs them.
struct Invocation {
  std::vector<std::string> words;
  std::string program;  // path of the program's file; a new version may have replaced the file
  std::string notify_socket;  // NOTIFY_SOCKET; empty: none

  // Call before NOTIFY_SOCKET is removed from the environment.
  static Invocation Of(int argc, char** argv);
};

// Starts the program's file with the same arguments and --take-over. The process goes on without
// this one. Returns a pidfd, which is readable when the process has ended: call Reap then.
StatusOr<UniqueFd> SpawnSuccessor(const Invocation& invocation);
// Sends SIGKILL to the process. The pidfd becomes readable when the process has ended.
void Kill(const UniqueFd& process);
// Does the same and waits for the end.
void KillAndReap(const UniqueFd& process);
// Returns how the process ended: "ended with status 2", "was killed by signal 9".
std::string Reap(const UniqueFd& process);

class Detached;

// Replaces the program of this process by a new run of it, without --detach, which reports to the
// parent of this one. Returns only on failure.
void RunAnew(const Invocation& invocation, Detached& detached);
// Replaces the program of this process by a new run of it with --idle, which holds no descriptor
// and no memory of this one. Returns only on failure. A container's supervisor would start a
// process that ends again, and the old version would take over from its successor.
void RunIdle(const Invocation& invocation);
// Waits for SIGTERM or SIGINT. Call before any thread exists.
void AwaitStop();

// Returns how often the program was replaced so because a take-over was refused, and counts one
// more.
int CountTries();

// Ends of --detach: the parent waits until the child serves.
class Detached {
 public:
  Detached() = default;
  // Forks. Returns the exit status in the parent; in the child, or on kGoOn, the program continues.
  // Call before any thread exists.
  static constexpr int kGoOn = -1;
  int Fork();
  // Child: reports that the daemon serves. Does nothing without Fork.
  void Serves();
  // Keeps the way to the parent over RunAnew, whose program takes it up.
  void Keep();
  void TakeUp();

 private:
  UniqueFd to_parent_;
};

}  // namespace rocegw::daemon
