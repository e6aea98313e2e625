// SPDX-License-Identifier: Apache-2.0
// Event channels of the connection manager. Programs poll, read (through us) and close nothing but
// the channel's descriptor, which is a socket that the daemon writes one record per event to, or,
// beside the machine's own devices, one that is readable when that socket or their channel is.
#include <sys/epoll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_real.h"
#include "gateway/client/objects.h"
#include "gateway/client/raw_syscall.h"
#include "gateway/client/real.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

namespace {

SpinLock g_lock;
// By descriptor. A channel of the installed library has another one as long as both are open.
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
  channel->session->Release();
  free(channel);
}

// In a fork's child the lock may be that of a thread which is not there.
void StopTaking(CmChannel* channel) {
  if (!channel->session->inherited()) pthread_mutex_lock(&channel->taking);
}
void ResumeTaking(CmChannel* channel) {
  if (!channel->session->inherited()) pthread_mutex_unlock(&channel->taking);
}

namespace {

void Control(const CmChannel* channel, int operation, int descriptor) {
  epoll_event readable = {EPOLLIN, {}};
  RawSyscall(SYS_epoll_ctl, channel->channel.fd, operation, descriptor, &readable);
}

int MakeMixed(CmChannel* channel) {
  const long fd = RawSyscall(SYS_epoll_create1, EPOLL_CLOEXEC);
  if (fd < 0) return static_cast<int>(-fd);
  channel->channel.fd = MoveAside(static_cast<int>(fd));
  WatchToo(channel, channel->events);
  return 0;
}

}  // namespace

void WatchToo(const CmChannel* channel, int descriptor) {
  Control(channel, EPOLL_CTL_ADD, descriptor);
}
void WatchNoMore(const CmChannel* channel, int descriptor) {
  Control(channel, EPOLL_CTL_DEL, descriptor);
}

CmChannel* MakeChannel(Session* session) {
  auto* channel = MakeObject<CmChannel>();
  if (channel == nullptr) return nullptr;
  struct {
    rocegw_request header;
  } request = {};
  const int error = session->CallForEvents(ROCEGW_MSG_CM_CREATE_CHANNEL, &request, &channel->handle,
                                           &channel->events);
  if (error != 0) {
    free(channel);
    errno = error;
    return nullptr;
  }
  // librspreload.so until 2024 mistakes a program's descriptor for that of a socket's channel where
  // the channel's is the lower one, so that select() names neither.
  channel->events = channel->channel.fd = MoveAside(channel->events);
  channel->session = session;
  channel->users = 1;
  pthread_mutex_init(&channel->taking, nullptr);
  session->AddReference();
  int failure = RealCmHasDevices() ? MakeMixed(channel) : 0;
  if (failure == 0 && !Register(&channel->channel)) failure = ENOMEM;
  if (failure != 0) {
    DestroyChannel(channel);
    errno = failure;
    return nullptr;
  }
  return channel;
}

void DestroyChannel(CmChannel* channel) {
  Unregister(&channel->channel);
  channel->session->CallDestroy(ROCEGW_MSG_CM_DESTROY_CHANNEL, channel->handle);
  if (channel->real != nullptr) ROCEGW_REAL(rdma_destroy_event_channel)(channel->real);
  if (IsMixed(channel)) RawClose(channel->events);
  RawClose(channel->channel.fd);
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
