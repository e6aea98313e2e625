// SPDX-License-Identifier: Apache-2.0
// Event channels of rdma_cm as programs hold them: ours if a gateway is reachable, else the
// installed librdmacm's. Errors are errno values unless stated otherwise. Control path; any thread.
#pragma once

#include <pthread.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

#include "gateway/client/process/own_descriptor.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

struct CmChannel {
  rdma_event_channel channel;  // first: programs hold it
  // Program's descriptor: an epoll descriptor over the next two and the descriptor of `real`, so
  // that a channel outlives its gateway and serves the ids of the next one.
  OwnDescriptor events;  // the daemon's records; kNoDescriptor: no gateway. Guarded by `taking`
  OwnDescriptor lost;    // the same of a lost gateway, until all ids were notified. Same lock
  OwnDescriptor waits;   // the program's descriptor
  rdma_event_channel*
      real;          // channel of the machine's own devices; nullptr: none yet. Guarded by `taking`
  uint32_t turn;     // odd: `real` is asked first
  uint32_t handle;   // guarded by `taking`
  Session* session;  // latest session that the channel served; guarded by `taking`
  uint32_t forks;    // ForkCount() of the process that created the channel
  // Held without waiting while a record is read from the socket and counted on its id. When another
  // thread has the lock, the records still in the socket are unread.
  pthread_mutex_t taking;
  uint32_t users;  // threads in rdma_get_cm_event, plus one until it is destroyed; cm_channel.cc
};

bool IsOurs(const rdma_event_channel* channel);
inline CmChannel* FromRdma(rdma_event_channel* channel) {
  return reinterpret_cast<CmChannel*>(channel);
}

// Returns a channel for ids of the session; nullptr and errno.
CmChannel* MakeChannel(Session* session);
// Returns the session for the channel's new ids, and the channel's handle in it. After the end of
// its gateway the channel joins the next one, if there is one. The caller gets a reference.
int JoinGateway(CmChannel* channel, Session** session, uint32_t* handle);
// Handles the loss of the channel's gateway: its ids are notified. Requires `taking`.
void LoseGateway(CmChannel* channel);
void DestroyChannel(CmChannel* channel);
// For threads that have waited: the channel may be destroyed, so only the address is compared.
bool IsOpen(const rdma_event_channel* channel, int descriptor);
// Enters the channel, which exists until it is left; nullptr: it is not open any more.
CmChannel* EnterChannel(const rdma_event_channel* channel, int descriptor);
void LeaveChannel(CmChannel* channel);
// Makes the channel readable when that descriptor is.
void WatchToo(const CmChannel* channel, int descriptor);
void WatchNoMore(const CmChannel* channel, int descriptor);
void StopTaking(CmChannel* channel);
void ResumeTaking(CmChannel* channel);

// The table of channels, for fork.
void LockChannels();
void UnlockChannels();
void ResetChannelsLock();

}  // namespace rocegw::client
