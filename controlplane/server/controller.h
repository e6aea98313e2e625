// SPDX-License-Identifier: Apache-2.0
// The running controller: all parts made from a configuration, started in order. One thread starts,
// calls Tick now and then, and stops; everything else runs on threads of the parts.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "controlplane/server/config.h"
#include "gateway/base/status.h"

namespace rocegw::server {

class Controller {
 public:
  explicit Controller(Config config);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Everything runs, or nothing: the error names the part and the remedy.
  Status Start();
  // Calls in progress get a moment to end.
  void Stop();

  // Renews the controller's certificate when it is time, and looks whether the store is followed.
  // Returns when to call again, at the latest.
  std::chrono::milliseconds Tick();

  // The clock was set back by so much that the process should start anew.
  bool WantsToStartAnew() const;

  // One line for people: addresses, store.
  std::string Summary() const;
  // How a host joins, for people; several lines.
  std::string HowToJoin() const;
  // Of the running server; 0 otherwise.
  int port() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rocegw::server
