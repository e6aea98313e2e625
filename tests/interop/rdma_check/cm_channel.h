// SPDX-License-Identifier: Apache-2.0
// CmChannel: a librdmacm event channel whose events are waited for with a deadline and taken as
// copies, so that an id can be destroyed at any time (rdma_destroy_id waits for events that are not
// acknowledged).
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>
#include <string>

namespace rocegw::interop {

inline constexpr int kCmTimeoutMs = 20000;

struct CmEvent {
  rdma_cm_event_type type;
  int status;
  rdma_cm_id* id;         // the new id of a connect request
  rdma_cm_id* listen_id;  // set for connect requests
  std::string private_data;
  uint8_t responder_resources;
  uint8_t initiator_depth;
};

class CmChannel {
 public:
  CmChannel();
  ~CmChannel();
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;

  rdma_event_channel* get() { return channel_; }
  CmEvent Wait(const char* what);
  // The next event, which must be of this type.
  CmEvent Expect(rdma_cm_event_type type, const char* what);
  // True when an event is waiting.
  bool Pending();

 private:
  rdma_event_channel* channel_;
};

struct IdDeleter {
  void operator()(rdma_cm_id* id) const {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
  }
};
using OwnedId = std::unique_ptr<rdma_cm_id, IdDeleter>;

OwnedId CreateId(CmChannel& channel);
// Listens on an address with a port of the device's choice and returns that port, in host order.
uint16_t ListenAnyPort(rdma_cm_id* id, sockaddr_storage address);
// Resolves address and route.
void Resolve(CmChannel& channel, rdma_cm_id* id, sockaddr_storage address, uint16_t port);

}  // namespace rocegw::interop
