// SPDX-License-Identifier: Apache-2.0
// Ids of the machine's own RDMA devices. If such devices exist beside a gateway, an id begins as
// ours, and the address that it binds or resolves decides which side serves it. For another device
// it gets an id of the installed librdmacm behind it, whose context points back: calls go there,
// and their results are copied to the id that the program holds. A listener on all addresses has
// both. Any thread.
#pragma once

#include "gateway/client/cm/cm_acknowledge.h"
#include "gateway/client/cm/cm_channel.h"
#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

// Returns true if the installed librdmacm has devices; determined once. Never with
// ROCEGW_CM=gateway.
bool RealCmHasDevices();

// Returns the installed library's id to which calls go; nullptr: the id is ours.
inline rdma_cm_id* RealOf(rdma_cm_id* id) {
  if (!IsOurs(id)) return id;
  CmId* ours = FromRdma(id);
  return ours->delegated ? ours->real : nullptr;
}

// Decides the side of an unbound id that gets this local address; nullptr: the address from which
// the host reaches `destination`. Errno values; 0 also if it stays ours.
int ChooseSide(CmId* id, const sockaddr* source, const sockaddr* destination);
// Makes a listener on all addresses listen on the other devices, too.
int ListenBeside(CmId* id, int backlog);
// Move the real id to another channel. The first allocates what it needs; the second takes no
// channel lock.
int ReadyToMigrate(const CmId* id, CmChannel* to);
int MigrateReal(const CmId* id, const CmChannel* to);
// Destroys the real id, if there is one; 0 or -1 and errno.
int DestroyReal(CmId* id);

// Returns the next event of the channel's real part, counted on its id, with the channel entered.
// 0, EAGAIN, or an errno value.
int NextRealEvent(CmChannel* channel, CmEvent* event);

// Copies the addresses that the installed library knows for its id.
void TakeRealPlace(CmId* id);
// Give the id's queues to the real id, and take them back, around a call that uses them.
void GiveQueues(rdma_cm_id* id);
int TakeQueues(rdma_cm_id* id, int result);

}  // namespace rocegw::client
