// SPDX-License-Identifier: Apache-2.0
// A daemon's process for tests: started as a service manager would start it, where asked for inside
// of a network namespace, with its notifications, its log and its output caught. Killed with the
// object. One thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::testing {

class DaemonProcess {
 public:
  // directory: for its files, made by the caller. uid: as whom it runs.
  DaemonProcess(const NetworkNamespace& where, std::string program, std::string directory,
                const std::vector<std::string>& arguments, uid_t uid = 0);
  // In the test's own network namespace.
  DaemonProcess(std::string program, std::string directory,
                const std::vector<std::string>& arguments);
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // The next notification, "" when the process ended or nothing came in time.
  std::string NextNotification();
  // True once the daemon said that it is ready.
  bool WaitReady();
  void Signal(int signal) const;
  // Exit status; -1 when a signal killed it or it did not end in time.
  int WaitExit();
  std::string Log() const;
  // Whether the log of the running daemon holds the text, or comes to hold it in time: a thread of
  // the daemon's own writes the log.
  bool Logs(const std::string& text) const;
  // What it wrote to its standard output.
  std::string Output() const;
  pid_t pid() const { return pid_; }

 private:
  void Start(std::string program, const std::vector<std::string>& arguments, uid_t uid);
  std::string Read(const char* name) const;

  std::string directory_;
  std::string log_;  // name of the file, which no other daemon of the directory writes
  UniqueFd notify_;
  UniqueFd process_;
  pid_t pid_ = -1;
};

}  // namespace rocegw::testing
