// SPDX-License-Identifier: Apache-2.0
// Event channels of the connection manager. Programs poll and close only the channel's descriptor,
// and read events through the library. The descriptor is readable when the daemon has written an
// event record to the socket, or when the channel of the machine's own devices is readable.
#include "gateway/client/cm/cm_channel.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_id.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/fork.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

namespace {

SpinLock g_lock;
// Table by descriptor. While both are open, a channel of the installed library has another
// descriptor.
rdma_event_channel** g_channels = nullptr;
size_t g_channel_count = 0;

bool Register(rdma_event_channel* channel) {
  SpinGuard guard(g_lock);
  const auto index = static_cast<size_t>(channel->fd);
  if (index >= g_channel_count) {
    const size_t bigger = 2 * index + 64;
    auto* channels = static_cast<rdma_event_channel**>(
        realloc(static_cast<void*>(g_channels), bigger * sizeof(void*)));
    if (channels == nullptr) return false;
    memset(static_cast<void*>(channels + g_channel_count), 0,
           (bigger - g_channel_count) * sizeof(void*));
    g_channels = channels;
    g_channel_count = bigger;
  }
  g_channels[index] = channel;
  return true;
}

bool IsRegistered(const rdma_event_channel* channel, int descriptor) {
  const auto index = static_cast<size_t>(descriptor);
  return index < g_channel_count && g_channels[index] == channel;
}

void Unregister(const rdma_event_channel* channel) {
  SpinGuard guard(g_lock);
  if (IsRegistered(channel, channel->fd)) g_channels[channel->fd] = nullptr;
}

}  // namespace

bool IsOpen(const rdma_event_channel* channel, int descriptor) {
  SpinGuard guard(g_lock);
  return IsRegistered(channel, descriptor);
}

bool IsOurs(const rdma_event_channel* channel) { return IsOpen(channel, channel->fd); }

CmChannel* EnterChannel(const rdma_event_channel* channel, int descriptor) {
  SpinGuard guard(g_lock);
  if (!IsRegistered(channel, descriptor)) return nullptr;
  CmChannel* entered = FromRdma(g_channels[descriptor]);
  ++entered->users;
  return entered;
}

void LeaveChannel(CmChannel* channel) {
  {
    SpinGuard guard(g_lock);
    if (--channel->users != 0) return;
  }
  pthread_mutex_destroy(&channel->taking);
  if (channel->session != nullptr) channel->session->Release();
  free(channel);
}

void LockChannels() { g_lock.Lock(); }
void UnlockChannels() { g_lock.Unlock(); }
void ResetChannelsLock() { g_lock.Reset(); }

// In a forked child the lock may be held by a thread that does not exist there.
void StopTaking(CmChannel* channel) {
  if (channel->forks == ForkCount()) pthread_mutex_lock(&channel->taking);
}
void ResumeTaking(CmChannel* channel) {
  if (channel->forks == ForkCount()) pthread_mutex_unlock(&channel->taking);
}

namespace {

void Control(const CmChannel* channel, int operation, int descriptor) {
  epoll_event readable = {EPOLLIN, {}};
  RawSyscall(SYS_epoll_ctl, channel->channel.fd, operation, descriptor, &readable);
}

int CreateAtDaemon(Session* session, uint32_t* handle, OwnDescriptor* events) {
  struct {
    rocegw_request header;
  } request = {};
  int descriptor = -1;
  const int error =
      session->CallForEvents(ROCEGW_MSG_CM_CREATE_CHANNEL, &request, handle, &descriptor);
  if (error == 0) *events = Own(MoveAside(descriptor));
  return error;
}

// Requires `taking`.
void Serve(CmChannel* channel, Session* session, uint32_t handle, OwnDescriptor events) {
  channel->session = session;
  channel->handle = handle;
  channel->events = events;
  WatchToo(channel, events.number);
}

}  // namespace

void WatchToo(const CmChannel* channel, int descriptor) {
  if (IsStillOwn(channel->waits)) Control(channel, EPOLL_CTL_ADD, descriptor);
}
void WatchNoMore(const CmChannel* channel, int descriptor) {
  if (IsStillOwn(channel->waits)) Control(channel, EPOLL_CTL_DEL, descriptor);
}

CmChannel* MakeChannel(Session* session) {
  auto* channel = MakeObject<CmChannel>();
  if (channel == nullptr) return nullptr;
  channel->forks = ForkCount();
  channel->users = 1;
  channel->events = channel->lost = kNoDescriptor;
  pthread_mutex_init(&channel->taking, nullptr);
  // librspreload.so until 2024 mistakes a program's descriptor for a socket's channel if the
  // channel has the lower number, so that select() reports neither.
  channel->channel.fd = MoveAside(static_cast<int>(RawSyscall(SYS_epoll_create1, EPOLL_CLOEXEC)));
  channel->waits = Own(channel->channel.fd);
  int error = channel->channel.fd >= 0 ? 0 : -channel->channel.fd;
  OwnDescriptor events = kNoDescriptor;
  if (error == 0) error = CreateAtDaemon(session, &channel->handle, &events);
  if (error == 0) {
    session->AddReference();
    Serve(channel, session, channel->handle, events);
    if (!Register(&channel->channel)) error = ENOMEM;
  }
  if (error == 0) return channel;
  DestroyChannel(channel);
  errno = error;
  return nullptr;
}

int JoinGateway(CmChannel* channel, Session** session, uint32_t* handle) {
  StopTaking(channel);
  Session* const old = channel->session;
  old->AddReference();
  *handle = channel->handle;
  ResumeTaking(channel);
  *session = old;
  if (!old->CheckHungUp()) return 0;
  Session* const fresh = AcquireForCm();
  OwnDescriptor events = kNoDescriptor;
  int error = fresh != nullptr ? CreateAtDaemon(fresh, handle, &events) : ENODEV;
  if (error == 0) {
    StopTaking(channel);
    if (channel->session == old) {
      LoseGateway(channel);
      Serve(channel, fresh, *handle, events);
      old->Release();
      fresh->AddReference();
    } else {
      error = EAGAIN;  // another thread was faster
    }
    ResumeTaking(channel);
  }
  old->Release();
  if (error == 0) {
    *session = fresh;
    return 0;
  }
  if (error == EAGAIN) {
    fresh->CallDestroy(ROCEGW_MSG_CM_DESTROY_CHANNEL, *handle);
    CloseOwn(&events);
  }
  if (fresh != nullptr) fresh->Release();
  return error == EAGAIN ? JoinGateway(channel, session, handle) : error;
}

void LoseGateway(CmChannel* channel) {
  if (channel->lost.number < 0) {
    channel->lost = channel->events;
  } else {
    WatchNoMore(channel, channel->events.number);
    CloseOwn(&channel->events);
  }
  channel->events = kNoDescriptor;
}

void DestroyChannel(CmChannel* channel) {
  Unregister(&channel->channel);
  if (channel->session != nullptr) {
    channel->session->CallDestroy(ROCEGW_MSG_CM_DESTROY_CHANNEL, channel->handle);
  }
  if (channel->real != nullptr) ROCEGW_REAL(rdma_destroy_event_channel)(channel->real);
  CloseOwn(&channel->events);
  CloseOwn(&channel->lost);
  CloseOwn(&channel->waits);
  LeaveChannel(channel);
}

}  // namespace rocegw::client

using rocegw::client::CmChannel;
using rocegw::client::FromRdma;
using rocegw::client::IsOurs;
using rocegw::client::Session;

ROCEGW_EXPORT rdma_event_channel* rdma_create_event_channel() {
  Session* session = rocegw::client::AcquireForCm();
  if (session == nullptr) {
    const auto real = ROCEGW_REAL(rdma_create_event_channel);
    if (real != nullptr) return real();
    errno = ENODEV;
    return nullptr;
  }
  CmChannel* channel = rocegw::client::MakeChannel(session);
  const int saved = errno;
  session->Release();
  errno = saved;
  return channel != nullptr ? &channel->channel : nullptr;
}

ROCEGW_EXPORT void rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (IsOurs(channel)) {
    DestroyChannel(FromRdma(channel));
  } else {
    ROCEGW_REAL(rdma_destroy_event_channel)(channel);
  }
}
