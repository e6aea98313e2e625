// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_real.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "gateway/client/device/device.h"
#include "gateway/client/process/environment.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"
#include "gateway/client/process/sysfs_tree.h"

namespace rocegw::client {

namespace {

enum class Presence : int { kUnknown, kNone, kSome };

Presence LookForDevices() {
  const char* choice = Setting("ROCEGW_CM");
  if (choice != nullptr && strcmp(choice, "gateway") == 0) return Presence::kNone;
  // The installed libraries report missing devices on stderr.
  if (!KernelHasRdma()) return Presence::kNone;
  const auto list = ROCEGW_REAL(ibv_get_device_list);
  int count = 0;
  ibv_device** devices = list != nullptr ? list(&count) : nullptr;
  if (devices != nullptr) ROCEGW_REAL(ibv_free_device_list)(devices);
  if (count == 0) return Presence::kNone;
  const auto create = ROCEGW_REAL(rdma_create_event_channel);
  rdma_event_channel* channel = create != nullptr ? create() : nullptr;
  if (channel == nullptr) return Presence::kNone;
  ROCEGW_REAL(rdma_destroy_event_channel)(channel);
  return Presence::kSome;
}

bool IsAny(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == INADDR_ANY;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const uint32_t v4 = ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    return v4 >> 24 == IN_LOOPBACKNET;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

bool HasFamily(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

socklen_t LengthOf(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// Returns the address from which this host reaches the destination.
bool FindSource(const sockaddr* destination, sockaddr_storage* source) {
  const long fd = RawSyscall(SYS_socket, static_cast<int>(destination->sa_family),
                             SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const int socket = static_cast<int>(fd);
  socklen_t length = sizeof(*source);
  const bool found = RawConnect(socket, destination, LengthOf(destination)) == 0 &&
                     RawSyscall(SYS_getsockname, socket, source, &length) == 0;
  RawClose(socket);
  return found;
}

struct GidSearch {
  uint8_t wanted[16];
  bool found;
};

bool Compare(const rocegw_gid_entry& entry, void* context) {
  auto* search = static_cast<GidSearch*>(context);
  search->found = memcmp(entry.gid, search->wanted, sizeof(search->wanted)) == 0;
  return !search->found;
}

bool GatewayHas(Session* session, const sockaddr* address) {
  GidSearch search = {};
  if (address->sa_family == AF_INET) {
    search.wanted[10] = search.wanted[11] = 0xff;
    memcpy(search.wanted + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else {
    memcpy(search.wanted, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  }
  for (uint32_t i = 0; i < session->welcome().device_count && !search.found; ++i) {
    ForEachGid(session, i, 0, &Compare, &search);
  }
  return search.found;
}

rdma_event_channel* RealPartOf(CmChannel* channel) {
  StopTaking(channel);
  if (channel->real == nullptr) {
    rdma_event_channel* real = ROCEGW_REAL(rdma_create_event_channel)();
    if (real != nullptr) {
      RawFcntl(real->fd, F_SETFL, RawFcntl(real->fd, F_GETFL, 0) | O_NONBLOCK);
      WatchToo(channel, real->fd);
      channel->real = real;
    }
  }
  rdma_event_channel* real = channel->real;
  ResumeTaking(channel);
  return real;
}

int SetOptions(const CmId* id, rdma_cm_id* real) {
  for (uint32_t i = 0; i < id->option_count; ++i) {
    CmOption option = id->options[i];
    if (ROCEGW_REAL(rdma_set_option)(real, RDMA_OPTION_ID, option.name, option.value,
                                     option.length) != 0) {
      return errno;
    }
  }
  return 0;
}

// Creates the id behind the id, with all options set so far.
int MakeReal(CmId* id, rdma_cm_id** result) {
  rdma_event_channel* channel = RealPartOf(FromRdma(id->id.channel));
  if (channel == nullptr || ROCEGW_REAL(rdma_create_id)(channel, result, id, id->id.ps) != 0) {
    return errno;
  }
  (*result)->qp_type = id->id.qp_type;
  int error = SetOptions(id, *result);
  if (error == 0 && id->local_ece.vendor_id != 0 &&
      ROCEGW_REAL(rdma_set_local_ece)(*result, &id->local_ece) != 0) {
    error = errno;
  }
  if (error != 0) ROCEGW_REAL(rdma_destroy_id)(*result);
  return error;
}

// The installed library binds only to addresses of its devices.
bool CanBind(rdma_cm_id* real, const sockaddr* address) {
  sockaddr_storage copy = {};
  memcpy(&copy, address, LengthOf(address));
  // A port in use does not matter here.
  reinterpret_cast<sockaddr_in*>(&copy)->sin_port = 0;
  return ROCEGW_REAL(rdma_bind_addr)(real, reinterpret_cast<sockaddr*>(&copy)) == 0 &&
         real->verbs != nullptr;
}

bool IsOfRealDevice(CmId* id, const sockaddr* address) {
  rdma_event_channel* channel = ROCEGW_REAL(rdma_create_event_channel)();
  if (channel == nullptr) return false;
  rdma_cm_id* probe = nullptr;
  bool is = false;
  if (ROCEGW_REAL(rdma_create_id)(channel, &probe, nullptr, id->id.ps) == 0) {
    is = CanBind(probe, address);
    ROCEGW_REAL(rdma_destroy_id)(probe);
  }
  ROCEGW_REAL(rdma_destroy_event_channel)(channel);
  return is;
}

void CopyQueues(const rdma_cm_id* from, rdma_cm_id* to) {
  to->qp = from->qp;
  to->qp_type = from->qp_type;
  to->pd = from->pd;
  to->srq = from->srq;
  to->send_cq = from->send_cq;
  to->recv_cq = from->recv_cq;
  to->send_cq_channel = from->send_cq_channel;
  to->recv_cq_channel = from->recv_cq_channel;
}

// Creates an id of ours for a request to `listener`.
CmId* AdoptReal(CmId* listener, rdma_cm_id* real) {
  CmId* id = MakeId(listener->session, listener->id.channel, real->ps);
  if (id == nullptr) return nullptr;
  id->real = real;
  id->delegated = true;
  id->id.context = listener->id.context;
  real->context = id;
  CopyQueues(real, &id->id);
  TakeRealPlace(id);
  return id;
}

void CopyEvent(const rdma_cm_event& from, CmEvent* to) {
  to->event = from;
  const bool datagram = from.id->qp_type == IBV_QPT_UD;
  // The context of a join belongs to the program.
  if (from.event == RDMA_CM_EVENT_MULTICAST_JOIN || from.event == RDMA_CM_EVENT_MULTICAST_ERROR) {
    return;
  }
  const void** data =
      datagram ? &to->event.param.ud.private_data : &to->event.param.conn.private_data;
  const uint8_t length =
      datagram ? from.param.ud.private_data_len : from.param.conn.private_data_len;
  if (*data == nullptr) return;
  memcpy(to->private_data, *data, length);
  *data = to->private_data;
}

// Returns the id on which the event was counted; nullptr: no memory for a request.
CmId* Translate(const rdma_cm_event& from, CmEvent* event) {
  const bool request = from.listen_id != nullptr;
  auto* id = static_cast<CmId*>((request ? from.listen_id : from.id)->context);
  CopyEvent(from, event);
  event->event.listen_id = request ? &id->id : nullptr;
  event->counted_on = id;
  CmId* told = request ? AdoptReal(id, from.id) : id;
  if (told == nullptr) return nullptr;
  event->event.id = &told->id;
  if (from.event == RDMA_CM_EVENT_ADDR_RESOLVED || from.event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
    TakeRealPlace(id);
  }
  CountDelivered(id);
  return told;
}

}  // namespace

bool RealCmHasDevices() {
  static Presence known = Presence::kUnknown;
  Presence presence;
  __atomic_load(&known, &presence, __ATOMIC_ACQUIRE);
  if (presence == Presence::kUnknown) {
    presence = LookForDevices();
    __atomic_store(&known, &presence, __ATOMIC_RELEASE);
  }
  return presence == Presence::kSome;
}

int ChooseSide(CmId* id, const sockaddr* source, const sockaddr* destination) {
  if (!RealCmHasDevices() || id->delegated || id->real != nullptr || id->cm_device != nullptr) {
    return 0;
  }
  sockaddr_storage found;
  const auto* local = source;
  if (!HasFamily(local) || (IsAny(local) && destination != nullptr)) {
    if (!HasFamily(destination) || !FindSource(destination, &found)) return 0;
    local = reinterpret_cast<const sockaddr*>(&found);
  }
  if (IsAny(local) || IsLoopback(local) || GatewayHas(id->session, local)) return 0;
  if (!IsOfRealDevice(id, local)) return 0;
  rdma_cm_id* real = nullptr;
  int error = MakeReal(id, &real);
  if (error != 0) return error;
  // The id may be bound to a port on all addresses.
  sockaddr* bound = &id->id.route.addr.src_addr;
  if (HasFamily(bound) && ROCEGW_REAL(rdma_bind_addr)(real, bound) != 0) {
    error = errno;
    ROCEGW_REAL(rdma_destroy_id)(real);
    return error;
  }
  id->real = real;
  id->delegated = true;
  return 0;
}

int ListenBeside(CmId* id, int backlog) {
  sockaddr* address = &id->id.route.addr.src_addr;
  if (!RealCmHasDevices() || id->real != nullptr || !HasFamily(address) || !IsAny(address)) {
    return 0;
  }
  rdma_cm_id* real = nullptr;
  int error = MakeReal(id, &real);
  if (error != 0) return error;
  if (ROCEGW_REAL(rdma_bind_addr)(real, address) != 0 ||
      ROCEGW_REAL(rdma_listen)(real, backlog) != 0) {
    error = errno;
    ROCEGW_REAL(rdma_destroy_id)(real);
    return error;
  }
  id->real = real;
  return 0;
}

int ReadyToMigrate(const CmId* id, CmChannel* to) {
  return id->real == nullptr || RealPartOf(to) != nullptr ? 0 : errno;
}

int MigrateReal(const CmId* id, const CmChannel* to) {
  if (id->real == nullptr) return 0;
  return ROCEGW_REAL(rdma_migrate_id)(id->real, to->real) == 0 ? 0 : errno;
}

int DestroyReal(CmId* id) {
  if (id->real == nullptr) return 0;
  const int result = ROCEGW_REAL(rdma_destroy_id)(id->real);
  if (result == 0) id->real = nullptr;
  return result;
}

int NextRealEvent(CmChannel* channel, CmEvent* event) {
  StopTaking(channel);
  rdma_event_channel* real = channel->real;
  rdma_cm_event* from = nullptr;
  int error = EAGAIN;
  if (real != nullptr) {
    // The installed library's read is a cancellation point; this thread holds a lock.
    int cancelling = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
    error = ROCEGW_REAL(rdma_get_cm_event)(real, &from) == 0 ? 0 : errno;
    if (error == 0) {
      rdma_cm_id* id = from->id;
      const bool told = Translate(*from, event) != nullptr;
      ROCEGW_REAL(rdma_ack_cm_event)(from);
      if (!told) {
        ROCEGW_REAL(rdma_destroy_id)(id);
        error = ENOMEM;
      }
    }
    pthread_setcancelstate(cancelling, nullptr);
  }
  ResumeTaking(channel);
  return error;
}

void TakeRealPlace(CmId* id) {
  const rdma_cm_id& real = *id->real;
  id->id.route = real.route;
  id->id.port_num = real.port_num;
  if (id->id.verbs == nullptr) {
    id->id.verbs = real.verbs;
    id->id.pd = real.pd;
  }
}

void GiveQueues(rdma_cm_id* id) {
  if (IsOurs(id)) CopyQueues(id, FromRdma(id)->real);
}

int TakeQueues(rdma_cm_id* id, int result) {
  if (!IsOurs(id)) return result;
  const rdma_cm_id* real = FromRdma(id)->real;
  CopyQueues(real, id);
  // rdma_get_send_comp and similar functions look for the id there.
  for (ibv_cq* cq : {id->send_cq, id->recv_cq}) {
    if (cq != nullptr && cq->cq_context == real) cq->cq_context = id;
  }
  return result;
}

}  // namespace rocegw::client
