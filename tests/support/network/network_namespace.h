// SPDX-License-Identifier: Apache-2.0
// Network namespaces without names. A namespace lives as long as its descriptor, so a test that
// dies leaves nothing behind. Needs root; otherwise Create fails. Entering changes only the calling
// thread.
#pragma once

#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::testing {

class NetworkNamespace {
 public:
  // Returns a new namespace with its loopback interface up.
  static StatusOr<NetworkNamespace> Create();

  // Scope in which the calling thread opens sockets and runs commands in the namespace.
  class Inside {
   public:
    explicit Inside(const NetworkNamespace& where);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    UniqueFd previous_;
  };

  // Runs a shell command in the namespace. A failure has exit status and output in its text.
  Status Run(const std::string& command) const;

  // Returns the path for commands such as `ip link set NAME netns PATH`.
  std::string path() const;

 private:
  explicit NetworkNamespace(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// Joins two namespaces by a veth pair called `name` on both sides, with 10.9.0.1/24 and fd09::1/64
// in the first, .2 and ::2 in the second, both up.
Status JoinByVeth(const NetworkNamespace& first, const NetworkNamespace& second,
                  const std::string& name, unsigned mtu);

// Adds permanent neighbour entries on both sides: address resolution may take a second, during
// which packets are lost.
Status IntroduceNeighbours(const NetworkNamespace& first, const NetworkNamespace& second,
                           const std::string& name);

}  // namespace rocegw::testing
