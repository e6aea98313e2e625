// SPDX-License-Identifier: Apache-2.0
// Process of the rocegw-controller program that can be killed, stopped and started again; its
// directory and port stay. The process ends with the thread that started it. For benchmarks and
// tests that need no network namespace. A failed step ends the calling program. One thread; gRPC
// channels may be used by any thread.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rocegw::testing {

[[noreturn]] void GiveUp(const std::string& why);

// Returns different ports that have no listener at the time of the call.
std::vector<int> FreeTcpPorts(size_t count);

class ControllerProgram {
 public:
  struct Options {
    std::string program;    // path
    std::string directory;  // existing
    int port = 0;
    std::vector<int> all_ports;  // ports of all controllers of the fleet; empty: one controller
    std::string more;            // further lines of configuration
  };
  explicit ControllerProgram(Options options);
  ~ControllerProgram();
  ControllerProgram(const ControllerProgram&) = delete;
  ControllerProgram& operator=(const ControllerProgram&) = delete;

  // Returns before the controller is ready; calls with wait_for_ready wait for that.
  void Start();
  void Kill();  // sends SIGKILL and waits for the end
  void Stop();  // sends SIGSTOP and waits until the process has stopped
  void Continue();
  // Returns the wait status of a process that ended by itself, once.
  std::optional<int> Ended();
  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

  std::string state_dir() const { return options_.directory + "/state"; }
  std::string log_file() const { return options_.directory + "/controller.log"; }
  std::string address() const { return "127.0.0.1:" + std::to_string(options_.port); }
  // Returns a new connection as the administrator.
  std::shared_ptr<grpc::Channel> Admin() const;
  // Returns the peak of resident memory in MiB.
  double PeakMemory() const;

 private:
  const Options options_;
  pid_t pid_ = -1;
};

// Returns a context for calls to a controller that may still be starting.
std::unique_ptr<grpc::ClientContext> PatientContext(
    std::chrono::milliseconds deadline = std::chrono::seconds(50));

}  // namespace rocegw::testing
