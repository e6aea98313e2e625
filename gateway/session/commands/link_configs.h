// SPDX-License-Identifier: Apache-2.0
// Configurations with which workers link a session's objects: for new objects, and for those of a
// gateway that this one replaces. Control thread.
#pragma once

#include "gateway/session/objects/objects.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/verbs/mr_table.h"
#include "gateway/verbs/qp_config.h"
#include "gateway/worker/control/control_message.h"

namespace rocegw::session {

class ClientSession;

// Access flags of a region that workers check.
inline constexpr uint32_t kDataPathAccess = verbs::kAccessLocalWrite | verbs::kAccessRemoteWrite |
                                            verbs::kAccessRemoteRead | verbs::kAccessRemoteAtomic |
                                            verbs::kAccessFlushGlobal;

// Returns the part of a queue pair's configuration that follows from pool and port.
verbs::QpConfig QpConfigOn(ClientSession& session, uint32_t device);
verbs::QpConfig QpConfigOf(ClientSession& session, uint32_t handle, const Qp& qp);
// Returns the message that makes the domain known to its worker, and takes note that it was sent.
worker::LinkSession LinkOf(XrcDomain& domain);
// Returns the configuration of a receiving queue pair of the domain, and takes note that it was
// sent.
verbs::QpConfig XrcTargetConfigOf(ClientSession& session, Qpn qpn, XrcDomain& domain,
                                  XrcTarget& target);
verbs::CqConfig CqConfigOf(const ClientSession& session, uint32_t handle, const Cq& cq,
                           WorkerIndex worker);
verbs::SrqConfig SrqConfigOf(const ClientSession& session, uint32_t handle, const Srq& srq);
verbs::RegionConfig RegionConfigOf(const ClientSession& session, uint32_t handle, const Mr& mr);

// Part of a registration that lies in a remapped region. Both ranges end within the address space.
struct DirectPart {
  uint8_t* bytes = nullptr;
  uint64_t from = 0;  // offset in the registration
  uint64_t length = 0;
};
DirectPart Intersect(const memory::Region& region, uint64_t address, uint64_t length);

// Returns how the gateway reaches a registration. region: nullptr, or the one that has its bytes.
rocegw_memory_way WayOf(const ClientSession& session, const RemappedRegion* region);

}  // namespace rocegw::session
