// SPDX-License-Identifier: Apache-2.0
// Listening end of a donor: an RDMA CM identifier with the event channel on which connection
// requests and the events of accepted connections arrive. Belongs to the donor's thread.
#pragma once

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <string>

#include "gateway/base/status.h"

namespace rocegw::far {

class Listener {
 public:
  Listener() = default;
  // All identifiers of the channel must be destroyed before.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Listens at the host's addresses (empty: all IPv4 addresses) and the port, both by name or
  // number. Called once. EINVAL: they cannot be resolved.
  Status Open(const std::string& host, const std::string& port);

  rdma_cm_id* id() const { return id_; }
  // Returns the address of the listener as a number; empty: all addresses.
  std::string address() const;
  uint16_t port() const { return ntohs(rdma_get_src_port(id_)); }
  // Does not block when it is read.
  rdma_event_channel* channel() const { return channel_; }

 private:
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
};

// Returns the address that a connection request comes from.
std::string PeerAddress(rdma_cm_id* id);

}  // namespace rocegw::far
