// SPDX-License-Identifier: Apache-2.0
// Events of the connection manager: converts the daemon's records for programs, and takes the steps
// that rdma_cm takes by itself first (when the peer has accepted, the id's QP is made ready).
#include "gateway/client/cm/cm_event.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_acknowledge.h"
#include "gateway/client/cm/cm_channel.h"
#include "gateway/client/cm/cm_lifetime.h"
#include "gateway/client/cm/cm_multicast.h"
#include "gateway/client/cm/cm_place.h"
#include "gateway/client/cm/cm_qp.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

namespace {

enum class Outcome { kTell, kSkip };

constexpr uint8_t kNoReason = 0;
constexpr uint8_t kDefaultHopLimit = 64;

void FillConnParam(const rocegw_cm_param& from, CmEvent* to) {
  rdma_conn_param& param = to->event.param.conn;
  if (from.private_length != 0) param.private_data = to->private_data;
  param.private_data_len = from.private_length;
  param.responder_resources = from.responder_resources;
  param.initiator_depth = from.initiator_depth;
  param.flow_control = from.flow_control;
  param.retry_count = from.retry_count;
  param.rnr_retry_count = from.rnr_retry_count;
  param.srq = from.srq;
  param.qp_num = from.qpn;
}

void FillUdParam(const rocegw_cm_event& record, CmEvent* to) {
  rdma_ud_param& param = to->event.param.ud;
  if (record.param.private_length != 0) param.private_data = to->private_data;
  param.private_data_len = record.param.private_length;
  param.qp_num = record.param.qpn;
  param.qkey = record.param.qkey;
  param.ah_attr.is_global = 1;
  param.ah_attr.port_num = 1;
  memcpy(param.ah_attr.grh.dgid.raw, record.dgid, sizeof(record.dgid));
  param.ah_attr.grh.sgid_index = static_cast<uint8_t>(record.sgid_index);
  param.ah_attr.grh.flow_label = record.flow_label;
  param.ah_attr.grh.traffic_class = static_cast<uint8_t>(record.traffic_class);
  param.ah_attr.grh.hop_limit = kDefaultHopLimit;
}

CmPlace PlaceOf(const rocegw_cm_event& record) {
  return {record.device, &record.source,  &record.destination,  record.sgid,
          record.dgid,   record.path_mtu, record.traffic_class, record.flow_label};
}

int RejectQuietly(CmId* id) {
  rocegw_cm_reject request = {};
  request.reason = kNoReason;
  return CmCall(id, ROCEGW_MSG_CM_REJECT, &request);
}

// Completes the active side after the peer accepted: makes our QP ready and notifies the peer; the
// program gets ESTABLISHED. Without a QP on the id the program does all that.
void FinishActiveSide(CmId* id, CmEvent* event) {
  if (id->id.qp == nullptr) return;
  SetStage(id, CmStage::kAnswered);
  const int error = StepWithQp(id, CmStage::kAnswered, ROCEGW_MSG_CM_ESTABLISH, IBV_QPS_RTS);
  if (error == 0) {
    SetStage(id, CmStage::kConnected);
    event->event.event = RDMA_CM_EVENT_ESTABLISHED;
    return;
  }
  BreakQp(id);
  RejectQuietly(id);
  event->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
  event->event.status = -error;
}

// Creates an id for a request to `listener`, on the channel of its event; the daemon has its part
// already.
CmId* AdoptRequest(CmId* listener, rdma_event_channel* channel, const rocegw_cm_event& record) {
  CmId* id = MakeId(listener->session, channel, static_cast<rdma_port_space>(record.port_space));
  if (id == nullptr) return nullptr;
  id->passive = true;
  SetStage(id, CmStage::kRequested);
  id->id.context = listener->id.context;
  id->id.qp_type = listener->id.qp_type;
  id->responder_resources = record.param.responder_resources;
  id->initiator_depth = record.param.initiator_depth;
  id->remote_ece = {record.param.ece_vendor, record.param.ece_options, 0};
  EnterId(id, record.id);
  // Using the request's handle tells the daemon that the program has it: it outlives its listener
  // and does not count in the backlog.
  int error = SavesRequests(id) ? id->session->TellObject(ROCEGW_MSG_CM_QUERY_ID, id->handle)
                                : id->session->CallObject(ROCEGW_MSG_CM_QUERY_ID, id->handle);
  if (error == 0) error = TakePlace(id, PlaceOf(record));
  if (error == 0 && listener->synchronous != 0 && MigrateId(id, nullptr) != 0) {
    error = errno;
  }
  if (error == 0) return id;
  id->session->CallDestroy(ROCEGW_MSG_CM_DESTROY_ID, id->handle);
  FreeId(id);
  return nullptr;
}

// Fills in the event; `id` counts it as delivered.
Outcome Translate(CmId* id, rdma_event_channel* channel, const rocegw_cm_event& record,
                  CmEvent* event) {
  event->counted_on = id;
  event->event.id = &id->id;
  event->event.event = static_cast<rdma_cm_event_type>(record.type);
  event->event.status = record.status;
  memcpy(event->private_data, record.param.private_data, sizeof(event->private_data));
  if (id->id.qp_type == IBV_QPT_UD) {
    FillUdParam(record, event);
  } else {
    FillConnParam(record.param, event);
  }
  switch (record.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      const bool address = record.type == RDMA_CM_EVENT_ADDR_RESOLVED;
      const int error = TakePlace(id, PlaceOf(record));
      if (error == 0) {
        SetStage(id, address ? CmStage::kAddressKnown : CmStage::kRouteKnown);
        break;
      }
      event->event.event = address ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ROUTE_ERROR;
      event->event.status = -error;
      break;
    }
    case RDMA_CM_EVENT_CONNECT_REQUEST: {
      CmId* request = AdoptRequest(id, channel, record);
      if (request == nullptr) return Outcome::kSkip;
      event->event.id = &request->id;
      event->event.listen_id = &id->id;
      break;
    }
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      id->remote_ece = {record.param.ece_vendor, record.param.ece_options, 0};
      FinishActiveSide(id, event);
      break;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      if (!FinishJoin(id, record.join, &event->event)) return Outcome::kSkip;
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      SetStage(id, CmStage::kConnected);
      break;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_REJECTED:
      BreakQp(id);
      break;
    default:
      break;
  }
  return Outcome::kTell;
}

// Drops a request whose listener is destroyed: the program cannot answer it.
void DropRequest(Session* session, const rocegw_cm_event& record) {
  if (record.type == RDMA_CM_EVENT_CONNECT_REQUEST && !IsKnown(session, record.id)) {
    session->CallDestroy(ROCEGW_MSG_CM_DESTROY_ID, record.id);
  }
}

// Record taken from a channel.
struct Taken {
  long size;  // size of the record, or -errno; -EAGAIN: none now
  rocegw_cm_event record;
  CmId* id;          // counts the event as delivered; nullptr: destroyed
  Session* session;  // session of a record without an id, with a reference; else nullptr
};

// Returns the size of the record, or -errno; the end of the channel counts as no record. Requires
// `taking`.
long Receive(CmChannel* channel, msghdr* message) {
  if (channel->events.number < 0) return -EAGAIN;
  const bool open = IsStillOwn(channel->events);
  const long size = open ? RawReceiveMessage(channel->events.number, message, MSG_DONTWAIT) : 0;
  if (size != 0) return size;
  // Closed by the daemon, or by the program without a call to the library.
  channel->session->OnChannelEnd();
  LoseGateway(channel);
  return -EAGAIN;
}

void Take(CmChannel* channel, Taken* taken) {
  *taken = {};
  iovec place = {&taken->record, sizeof(taken->record)};
  msghdr message = {};
  message.msg_iov = &place;
  message.msg_iovlen = 1;
  StopTaking(channel);
  taken->size = Receive(channel, &message);
  if (taken->size > 0) {
    const rocegw_cm_event& record = taken->record;
    const bool request = record.type == RDMA_CM_EVENT_CONNECT_REQUEST;
    taken->id =
        FindForEvent(channel->session, request ? record.listen_id : record.id, record.cookie);
    if (taken->id == nullptr) {
      taken->session = channel->session;
      taken->session->AddReference();
    }
  }
  ResumeTaking(channel);
}

// Reports the device removal of a lost gateway to one more id. EAGAIN: all ids have got it, and the
// channel has no events until it serves another gateway.
int TellRemoval(CmChannel* channel, CmEvent* event) {
  StopTaking(channel);
  CmId* removed = channel->lost.number >= 0 ? FindForRemoval(&channel->channel) : nullptr;
  if (removed == nullptr && channel->lost.number >= 0) {
    WatchNoMore(channel, channel->lost.number);
    CloseOwn(&channel->lost);
  }
  ResumeTaking(channel);
  if (removed == nullptr) return EAGAIN;
  memset(static_cast<void*>(event), 0, sizeof(*event));
  event->counted_on = removed;
  event->event.id = &removed->id;
  event->event.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
  return 0;
}

// Returns the daemon's next event without waiting: 0 or an errno value.
int NextRecord(CmChannel* channel, CmEvent* event) {
  for (;;) {
    Taken taken;
    Take(channel, &taken);
    if (taken.size == -EAGAIN) return TellRemoval(channel, event);
    if (taken.size < 0) return static_cast<int>(-taken.size);
    memset(static_cast<void*>(event), 0, sizeof(*event));
    if (taken.id == nullptr) {
      DropRequest(taken.session, taken.record);
      taken.session->Release();
      continue;
    }
    if (Translate(taken.id, &channel->channel, taken.record, event) == Outcome::kTell) return 0;
    CountAcknowledged(taken.id);
  }
}

// Returns the next event of the machine's own devices without waiting: 0 or an errno value.
int NextOfReal(CmChannel* channel, CmEvent* event) {
  const int error = NextRealEvent(channel, event);
  if (error != 0) return error;
  const CmId* listener = event->counted_on;
  CmId* told = FromRdma(event->event.id);
  // The id of a request to a synchronous listener gets a channel of its own.
  if (listener == told || listener->synchronous == 0 || MigrateId(told, nullptr) == 0) return 0;
  const int failure = errno;
  (void)DestroyId(told);
  CountAcknowledged(event->counted_on);
  return failure;
}

// Returns the channel's next event without waiting: 0 or an errno value. The two sources alternate.
int NextEvent(CmChannel* channel, CmEvent* event) {
  int error = EAGAIN;
  if (!RealCmHasDevices()) {
    error = NextRecord(channel, event);
  } else {
    const bool real_first = __atomic_fetch_xor(&channel->turn, 1, __ATOMIC_RELAXED) != 0;
    error = real_first ? NextOfReal(channel, event) : NextRecord(channel, event);
    if (error == EAGAIN)
      error = real_first ? NextRecord(channel, event) : NextOfReal(channel, event);
  }
  // The program may have closed the descriptor: nothing would ever come.
  return error == EAGAIN && !IsStillOwn(channel->waits) ? EBADF : error;
}

// Waits until there is an event: 0 or an errno value. Calls the C library: programs end threads
// that wait here with pthread_cancel.
int Await(int descriptor) {
  if ((RawFcntl(descriptor, F_GETFL, 0) & O_NONBLOCK) != 0) return EAGAIN;
  pollfd readable = {descriptor, POLLIN, 0};
  return poll(&readable, 1, -1) < 0 ? errno : 0;
}

}  // namespace

int Complete(CmId* id) {
  if (id->synchronous == 0) return 0;
  rdma_cm_id& rdma = id->id;
  if (rdma.event != nullptr) {
    Acknowledge(rdma.event);
    rdma.event = nullptr;
  }
  if (rdma_get_cm_event(rdma.channel, &rdma.event) != 0) return -1;
  if (rdma.event->event == RDMA_CM_EVENT_DEVICE_REMOVAL) return CmError(ENODEV);
  const int status = rdma.event->status;
  if (status == 0) return 0;
  if (rdma.event->event == RDMA_CM_EVENT_REJECTED) return CmError(ECONNREFUSED);
  return CmError(status < 0 ? -status : status);
}

int FinishReal(rdma_cm_id* id, int result) {
  return result != 0 || !IsOurs(id) ? result : Complete(FromRdma(id));
}

}  // namespace rocegw::client

using rocegw::client::CmChannel;
using rocegw::client::CmEvent;
using rocegw::client::IsOurs;

ROCEGW_EXPORT int rdma_get_cm_event(rdma_event_channel* rdma, rdma_cm_event** result) {
  if (!IsOurs(rdma)) return ROCEGW_REAL(rdma_get_cm_event)(rdma, result);
  if (result == nullptr) return rocegw::client::CmError(EINVAL);
  const int descriptor = rdma->fd;
  auto* event = static_cast<CmEvent*>(calloc(1, sizeof(CmEvent)));
  if (event == nullptr) return -1;
  for (;;) {
    int error = EBADF;
    if (CmChannel* channel = rocegw::client::EnterChannel(rdma, descriptor)) {
      error = rocegw::client::NextEvent(channel, event);
      LeaveChannel(channel);
    }
    if (error == EAGAIN) {
      error = rocegw::client::Await(descriptor);
      if (error != EAGAIN && error != EINTR) continue;
    }
    if (error == 0) {
      *result = &event->event;
      return 0;
    }
    free(event);
    // Another thread destroyed the channel. With a kernel device this call would keep waiting, and
    // programs (rping) rely on that: they take an error for a failure.
    while (!rocegw::client::IsOpen(rdma, descriptor)) pause();
    return rocegw::client::CmError(error);
  }
}
