// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/fuse_loop.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace rocegw::far {
namespace {

// Reads and writes are asynchronous; a thread is busy for longer only with a call that has a file
// to itself, or while too much is in flight.
constexpr uint32_t kThreads = 4;
constexpr auto kTick = std::chrono::milliseconds(50);
// Interrupts a thread that waits for a request.
constexpr int kInterrupt = SIGUSR1;

void Ignore(int /*signal*/) {}

}  // namespace

FuseLoop::~FuseLoop() {
  if (mounted_) fuse_session_unmount(session_);
  if (session_ != nullptr) fuse_session_destroy(session_);
}

Status FuseLoop::Mount(FileServer& server, const std::string& directory, bool allow_other) {
  std::string options = "fsname=rocegw-memory,subtype=rocegw,default_permissions";
  if (allow_other) options += ",allow_other";
  std::string program = "rocegw-memory";
  std::string option = "-o";
  char* words[] = {program.data(), option.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  session_ = fuse_session_new(&arguments, &FileServer::Operations(),
                              sizeof(FileServer::Operations()), &server);
  fuse_opt_free_args(&arguments);
  if (session_ == nullptr) return {EINVAL, "libfuse refuses the mount options"};
  errno = 0;
  if (fuse_session_mount(session_, directory.c_str()) != 0) {
    const int error = errno != 0 ? errno : EIO;
    return {error, "cannot mount " + directory + ": " + std::strerror(error) +
                       " (an empty directory, /dev/fuse, and root or fusermount3 are needed)"};
  }
  mounted_ = true;
  return OkStatus();
}

void FuseLoop::Run() {
  struct sigaction action {};
  action.sa_handler = Ignore;  // without SA_RESTART: read(2) returns
  sigaction(kInterrupt, &action, nullptr);
  serving_.store(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < kThreads; number++) {
    threads.emplace_back([this] {
      pthread_setname_np(pthread_self(), "rocegw-far-file");
      Serve();
      serving_.fetch_sub(1);
    });
  }
  while (!stop_.load() && serving_.load() == kThreads) std::this_thread::sleep_for(kTick);
  fuse_session_exit(session_);
  // A signal that comes before read(2) is lost, hence more than one.
  while (serving_.load() != 0) {
    for (std::thread& thread : threads) pthread_kill(thread.native_handle(), kInterrupt);
    std::this_thread::sleep_for(kTick);
  }
  for (std::thread& thread : threads) thread.join();
}

void FuseLoop::Serve() {
  fuse_buf buffer{};
  while (fuse_session_exited(session_) == 0) {
    const int got = fuse_session_receive_buf(session_, &buffer);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) break;
    fuse_session_process_buf(session_, &buffer);
  }
  std::free(buffer.mem);
}

}  // namespace rocegw::far
