// SPDX-License-Identifier: Apache-2.0
// Running controller: all parts of a configuration, started in order. One thread starts, calls Tick
// periodically, and stops; everything else runs on threads of the parts.
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

  // Starts all parts or none: the error names the part and the remedy.
  Status Start();
  // Stops; calls in progress get a moment to end.
  void Stop();

  // Renews the controller's certificate when due, and checks that the store is followed. Returns
  // the latest time of the next call.
  std::chrono::milliseconds Tick();

  // Returns true if the clock was set back so far that the process should restart.
  bool WantsToStartAnew() const;

  // Returns one line for display: addresses, store.
  std::string Summary() const;
  // Returns instructions for joining; several lines.
  std::string HowToJoin() const;
  // Returns the port of the running server; 0 otherwise.
  int port() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rocegw::server
