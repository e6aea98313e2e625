// SPDX-License-Identifier: Apache-2.0
// Descriptors that a gateway gives to the process that replaces it, and receives from the process
// that it replaces. Each has a kind and a name that is unique within its kind, such as the path of
// a socket. The part that would open a descriptor takes an inherited one of that name instead.
// Control thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw {

// Numbers stand in messages between two versions of the daemon and are never reused.
enum class FdKind : uint16_t {
  kRuntimeLock = 1,       // lock file of the runtime directory; name: path of the directory
  kInstanceLock = 2,      // lock against a second gateway; name: UDP port
  kUdpReceive = 3,        // receive socket of a worker; name: UDP port, address, worker
  kAttachListener = 4,    // name: path
  kGrpcListener = 5,      // name: path
  kMetricsListener = 6,   // name: configured address
  kTakeOverListener = 7,  // name: path
  // Descriptors of attached programs. The name begins with the number of the session.
  kClientSocket = 8,   // connection to the program
  kClientProcess = 9,  // the program's process
  kClientMemory = 10,  // its memory file
  kChunk = 11,         // shared memory; name: session, chunk
  kWake = 12,          // eventfd of a worker; name: session, worker
  kEvents = 13,        // end of an event channel; name: session, kind of channel, handle
  kRegion = 14,        // remapped memory; name: session, handle
  kXrcFile = 15,       // file of an XRC domain, with O_PATH; name: number of the domain
};

struct OfferedFd {
  FdKind kind = FdKind::kRuntimeLock;
  std::string name;
  int fd = -1;  // stays with the part that offers it
};
using OfferedFds = std::vector<OfferedFd>;

class InheritedFds {
 public:
  void Add(FdKind kind, const std::string& name, UniqueFd fd) {
    fds_[{kind, name}] = std::move(fd);
  }
  // Returns an invalid descriptor if none of that name was inherited.
  UniqueFd Take(FdKind kind, const std::string& name) {
    const auto known = fds_.find({kind, name});
    if (known == fds_.end()) return {};
    UniqueFd fd = std::move(known->second);
    fds_.erase(known);
    return fd;
  }
  // Closes the descriptors of a kind that no part took, and returns their names.
  std::vector<std::string> Discard(FdKind kind) {
    std::vector<std::string> names;
    std::erase_if(fds_, [&](const auto& entry) {
      if (entry.first.first != kind) return false;
      names.push_back(entry.first.second);
      return true;
    });
    return names;
  }
  void clear() { fds_.clear(); }
  size_t size() const { return fds_.size(); }

 private:
  std::map<std::pair<FdKind, std::string>, UniqueFd> fds_;
};

}  // namespace rocegw
