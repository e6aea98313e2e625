// SPDX-License-Identifier: Apache-2.0
// The rocegw-controller program as a process that may be killed, stopped and started again, with a
// directory and a port that stay. It ends with the thread that started it. For benchmarks and tests
// that need no network namespace; what cannot be done ends the program that asked. One thread, but
// for the channels.
#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rocegw::testing {

[[noreturn]] void GiveUp(const std::string& why);

// Ports that nobody listened on a moment ago, all different.
std::vector<int> FreeTcpPorts(size_t count);

class ControllerProgram {
 public:
  struct Options {
    std::string program;    // path
    std::string directory;  // exists
    int port = 0;
    std::vector<int> all_ports;  // of all controllers of the fleet; empty: it is alone
    std::string more;            // lines of configuration
  };
  explicit ControllerProgram(Options options);
  ~ControllerProgram();
  ControllerProgram(const ControllerProgram&) = delete;
  ControllerProgram& operator=(const ControllerProgram&) = delete;

  // Does not wait until it is ready: calls with wait_for_ready do.
  void Start();
  void Kill();  // SIGKILL, and it is gone
  void Stop();  // SIGSTOP, and it has stopped
  void Continue();
  // Its wait status when it has ended by itself, once.
  std::optional<int> Ended();
  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

  std::string state_dir() const { return options_.directory + "/state"; }
  std::string log_file() const { return options_.directory + "/controller.log"; }
  std::string address() const { return "127.0.0.1:" + std::to_string(options_.port); }
  // The administrator; a connection of its own.
  std::shared_ptr<grpc::Channel> Admin() const;
  // MiB that it has had in memory at most.
  double PeakMemory() const;

 private:
  const Options options_;
  pid_t pid_ = -1;
};

// For calls to a controller that may be just starting.
std::unique_ptr<grpc::ClientContext> PatientContext(
    std::chrono::milliseconds deadline = std::chrono::seconds(50));

}  // namespace rocegw::testing
