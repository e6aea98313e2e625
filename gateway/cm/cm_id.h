// SPDX-License-Identifier: Apache-2.0
// State of one rdma_cm_id: what its program has bound, resolved and requested. Plain data of the
// engine, control thread. States are those of rdma_cm; the protocol state is in the connection.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/cm/cm_types.h"

namespace rocegw::cm {

enum class IdState : uint8_t {
  kIdle,
  kBound,
  kResolvingAddress,
  kAddressResolved,
  kRouteResolved,
  kListening,
  kConnecting,    // from connect or connection request on, also while connected
  kDisconnected,  // the DISCONNECTED event was delivered
};

const char* StateName(IdState state);

struct Id;
// Neighbours in a list of ids (id_list.h).
struct IdLinks {
  Id* previous = nullptr;
  Id* next = nullptr;
};

struct Id {
  CmHandle handle;
  SessionId owner;
  uint32_t name = 0;  // the owner's name for the id
  PortSpace port_space = PortSpace::kTcp;
  QpType qp_type = QpType::kRc;
  IdState state = IdState::kIdle;

  Endpoint local;
  Endpoint remote;
  bool holds_port = false;

  // Options. 0 is a valid value of type of service and ack timeout.
  bool reuse_address = false;
  bool af_only = false;
  uint8_t type_of_service = 0;
  bool has_ack_timeout = false;
  uint8_t ack_timeout = 0;

  // Path of the id; device is -1 until bound to one.
  int32_t device = -1;
  wire::Gid source_gid;
  wire::Gid destination_gid;
  uint8_t source_gid_index = 0;
  uint32_t mtu = 0;  // path MTU in bytes of IP packet; 0: no route
  uint8_t path_mtu = 0;
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;

  Psn psn;                        // first PSN that this id's QP expects
  uint32_t connection = 0;        // our communication ID; 0: none
  CmHandle listener;              // listener of the request that created the id; 0: none
  uint32_t backlog = 0;           // listeners
  uint32_t waiting_requests = 0;  // listeners: requests not fetched by the program
  TimePoint deadline = kNever;    // deadline of the address resolution
  Id* first_request = nullptr;    // listeners: those requests
  IdLinks of_owner;               // ids of the same owner
  IdLinks of_listener;            // requests of the same listener that the program has not fetched
};

}  // namespace rocegw::cm
