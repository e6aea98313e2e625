// SPDX-License-Identifier: Apache-2.0
// A rocegwd process for tests: started inside a network namespace as a service manager would start
// it, with its notifications and its log caught. Killed with the object. One thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "tests/support/network_namespace.h"

namespace rocegw::testing {

class DaemonProcess {
 public:
  // directory: for its files, made by the caller. uid: as whom it runs.
  DaemonProcess(const NetworkNamespace& where, std::string program, std::string directory,
                const std::vector<std::string>& arguments, uid_t uid = 0);
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
  pid_t pid() const { return pid_; }

 private:
  std::string directory_;
  UniqueFd notify_;
  UniqueFd process_;
  pid_t pid_ = -1;
};

}  // namespace rocegw::testing
