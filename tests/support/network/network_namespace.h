// SPDX-License-Identifier: Apache-2.0
// Network namespaces without names: they live as long as their descriptor, so a test that dies
// leaves nothing behind. Needs root; Create says so. Entering changes the calling thread only.
#pragma once

#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::testing {

class NetworkNamespace {
 public:
  // A new one with its loopback interface up.
  static StatusOr<NetworkNamespace> Create();

  // While it lives, the calling thread is in the namespace: sockets it opens and commands it runs.
  class Inside {
   public:
    explicit Inside(const NetworkNamespace& where);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    UniqueFd previous_;
  };

  // Runs a shell command inside; its exit status and what it printed are in the text of a failure.
  Status Run(const std::string& command) const;

  // A path that commands like `ip link set NAME netns PATH` take.
  std::string path() const;

 private:
  explicit NetworkNamespace(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Joins two namespaces by a veth pair called `name` on both sides, with 10.9.0.1/24 and fd09::1/64
// in the first, .2 and ::2 in the second, both up.
Status JoinByVeth(const NetworkNamespace& first, const NetworkNamespace& second,
                  const std::string& name, unsigned mtu);

// Tells each the other's MAC address for good: resolving may take a second, and packets get lost
// meanwhile.
Status IntroduceNeighbours(const NetworkNamespace& first, const NetworkNamespace& second,
                           const std::string& name);

}  // namespace rocegw::testing
