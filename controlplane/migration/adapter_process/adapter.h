// SPDX-License-Identifier: Apache-2.0
// Calls an adapter: a program that speaks the protocol of adapters, one process for each call.
// Blocks until the answer or the deadline; any thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/migration/adapter/protocol.h"
#include "controlplane/migration/model/inventory.h"

namespace rocegw::migration {

class Adapter {
 public:
  // `words`: program and arguments. `stop_fd`: readable when a call has to end at once; -1: never.
  explicit Adapter(std::vector<std::string> words, int stop_fd = -1)
      : words_(std::move(words)), stop_fd_(stop_fd) {}

  // `problem`: one line; empty: there is an answer.
  // `cluster`: may be empty; the adapter "exec" has a program for each cluster.
  AdapterHello Hello(const std::string& cluster, std::string& problem) const;
  Inventory ReadInventory(const std::string& cluster, std::string& problem) const;
  // Every failure is an outcome: kTimedOut, kUnparsable, or what the adapter says.
  AdapterAnswer Call(const AdapterRequest& request) const;

 private:
  // Returns the only line of the answer.
  std::string Ask(const AdapterRequest& request, size_t most, bool& timed_out,
                  std::string& problem) const;

  const std::vector<std::string> words_;
  const int stop_fd_;
};

}  // namespace rocegw::migration
