// SPDX-License-Identifier: Apache-2.0
// Threads that take the kernel's requests for a mounted file system. Own threads instead of
// fuse_session_loop_mt: a stop must end them although files are open.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/far/program/file_server.h"

namespace rocegw::far {

class FuseLoop {
 public:
  FuseLoop() = default;
  ~FuseLoop();
  FuseLoop(const FuseLoop&) = delete;
  FuseLoop& operator=(const FuseLoop&) = delete;

  // Mounts the server's files. `directory` exists; `allow_other`: all users may use the files.
  Status Mount(FileServer& server, const std::string& directory, bool allow_other);
  // Serves until Stop is called, or the file system is unmounted by others.
  void Run();
  // Any thread.
  void Stop() { stop_.store(true); }

 private:
  void Serve();

  fuse_session* session_ = nullptr;
  bool mounted_ = false;
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> serving_{0};
};

}  // namespace rocegw::far
