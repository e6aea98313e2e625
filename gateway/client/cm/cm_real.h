// SPDX-License-Identifier: Apache-2.0
// Ids of the machine's own RDMA devices. Where such devices are beside a gateway, an id begins as
// ours, and the address that it is bound to or resolves decides whose it becomes. One of another
// device has an id of the installed librdmacm behind it, whose context leads back: calls go there,
// and what they leave behind is copied to the one that the program holds. A listener on all
// addresses has one of each. Any thread.
#pragma once

#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

// Whether the installed librdmacm has devices; found out once. Never with ROCEGW_CM=gateway.
bool RealCmHasDevices();

// The id at the installed library to which calls about this one go; nullptr: they are ours.
inline rdma_cm_id* RealOf(rdma_cm_id* id) {
  if (!IsOurs(id)) return id;
  CmId* ours = FromRdma(id);
  return ours->delegated ? ours->real : nullptr;
}

// Looks whose an id is that is bound to nothing yet and gets this local address; nullptr: that with
// which the host reaches `destination`. Errno values; 0 also when it stays ours.
int ChooseSide(CmId* id, const sockaddr* source, const sockaddr* destination);
// A listener on all addresses listens on those of the other devices, too.
int ListenBeside(CmId* id, int backlog);
// The real id follows to another channel, which has what it needs by the first; the second takes no
// lock of a channel.
int ReadyToMigrate(const CmId* id, CmChannel* to);
int MigrateReal(const CmId* id, const CmChannel* to);
// The real id goes, if there is one; 0 or -1 and errno.
int DestroyReal(CmId* id);

// The next event of the channel's real part, with the channel entered, and counted on its id. 0,
// EAGAIN, or an errno value.
int NextRealEvent(CmChannel* channel, CmEvent* event);

// Copies what the installed library knows of where its id is.
void TakeRealPlace(CmId* id);
// Between these two a call of the installed library makes, uses or takes away queues of the id.
void GiveQueues(rdma_cm_id* id);
int TakeQueues(rdma_cm_id* id, int result);
// What a call that takes time left behind: of an id of ours waits for its event where that is due.
int FinishReal(rdma_cm_id* id, int result);

}  // namespace rocegw::client
