// SPDX-License-Identifier: Apache-2.0
// Calls that connect, accept, reject and disconnect.
#include <cerrno>
#include <cstring>

#include "gateway/client/cm/cm_event.h"
#include "gateway/client/cm/cm_qp.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/queue_pair.h"

namespace rocegw::client {

namespace {

// Private data behind the header that rdma_cm adds for IP addresses.
constexpr uint8_t kConnectData = 56;
constexpr uint8_t kAcceptData = 196;
constexpr uint8_t kRejectData = 148;
constexpr uint8_t kDatagramConnectData = 180;
constexpr uint8_t kDatagramAcceptData = 136;

constexpr uint8_t kConsumer = 0;
constexpr uint8_t kVendorOption = 35;  // IBTA: reject reason "vendor option is not supported"

constexpr rdma_conn_param kDefaults = {nullptr, 0, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH, 0, 7, 7,
                                       0,       0};

int Fill(const CmId* id, const rdma_conn_param& from, uint8_t most_data, rocegw_cm_param* to) {
  if (from.private_data_len > most_data) return EINVAL;
  const rdma_cm_id& rdma = id->id;
  to->qpn = rdma.qp != nullptr ? rdma.qp->qp_num : from.qp_num;
  to->qp_type = static_cast<uint8_t>(rdma.qp_type);
  to->srq = rdma.qp != nullptr ? rdma.qp->srq != nullptr : from.srq;
  to->responder_resources = from.responder_resources;
  to->initiator_depth = from.initiator_depth;
  to->flow_control = from.flow_control;
  to->retry_count = from.retry_count;
  to->rnr_retry_count = from.rnr_retry_count;
  to->private_length = from.private_data != nullptr ? from.private_data_len : 0;
  to->ece_vendor = id->local_ece.vendor_id;
  to->ece_options = id->local_ece.options;
  if (to->private_length != 0) memcpy(to->private_data, from.private_data, to->private_length);
  return 0;
}

uint8_t Depth(uint8_t wanted, uint8_t offered) {
  return wanted == RDMA_MAX_RESP_RES || wanted > offered ? offered : wanted;
}

int Connect(CmId* id, const rdma_conn_param& param) {
  rocegw_cm_connect request = {};
  const uint8_t room = id->id.qp_type == IBV_QPT_UD ? kDatagramConnectData : kConnectData;
  const int error = Fill(id, param, room, &request.param);
  if (error != 0) return error;
  const bool with_qp = id->id.qp_type == IBV_QPT_RC && id->id.qp != nullptr;
  return CmStep(id, with_qp ? CmStage::kRouteKnown : CmStage::kAsked, ROCEGW_MSG_CM_CONNECT,
                &request);
}

int Accept(CmId* id, rdma_conn_param param) {
  const bool datagram = id->id.qp_type == IBV_QPT_UD;
  param.responder_resources = Depth(param.responder_resources, id->responder_resources);
  param.initiator_depth = Depth(param.initiator_depth, id->initiator_depth);
  rocegw_cm_connect request = {};
  request.cookie = id->cookie;
  int error = Fill(id, param, datagram ? kDatagramAcceptData : kAcceptData, &request.param);
  // Ready before the peer hears of it: its first message may follow its RTU at once, and the
  // program may answer before this returns.
  if (error == 0 && !datagram && id->id.qp != nullptr) {
    request.with_qp = TakesQpAlong(id) ? 1 : 0;
    if (request.with_qp != 0) {
      SetState(id->id.qp, IBV_QPS_RTS);
    } else {
      error = ReadyQp(id, param.responder_resources, param.initiator_depth);
    }
  }
  const CmStage right = request.with_qp != 0 ? CmStage::kRequested : CmStage::kAsked;
  if (error == 0) error = CmStep(id, right, ROCEGW_MSG_CM_ACCEPT, &request);
  if (error != 0 && !datagram) BreakQp(id);
  return error;
}

int Reject(CmId* id, const void* data, uint8_t length, uint8_t reason) {
  if (length > kRejectData) return EINVAL;
  rocegw_cm_reject request = {};
  request.reason = reason;
  request.private_length = data != nullptr ? length : 0;
  if (request.private_length != 0) memcpy(request.private_data, data, request.private_length);
  return CmCall(id, ROCEGW_MSG_CM_REJECT, &request);
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::CmError;
using rocegw::client::CmId;
using rocegw::client::CmStage;
using rocegw::client::FinishReal;
using rocegw::client::FromRdma;
using rocegw::client::GiveQueues;
using rocegw::client::RealOf;

ROCEGW_EXPORT int rdma_connect(rdma_cm_id* rdma, rdma_conn_param* param) {
  if (rdma_cm_id* real = RealOf(rdma)) {
    GiveQueues(rdma);
    return FinishReal(rdma, ROCEGW_REAL(rdma_connect)(real, param));
  }
  CmId* id = FromRdma(rdma);
  const int error =
      rocegw::client::Connect(id, param != nullptr ? *param : rocegw::client::kDefaults);
  return error != 0 ? CmError(error) : Complete(id);
}

ROCEGW_EXPORT int rdma_accept(rdma_cm_id* rdma, rdma_conn_param* param) {
  if (rdma_cm_id* real = RealOf(rdma)) {
    GiveQueues(rdma);
    const int result = ROCEGW_REAL(rdma_accept)(real, param);
    return rdma->qp_type == IBV_QPT_UD ? result : FinishReal(rdma, result);
  }
  CmId* id = FromRdma(rdma);
  const int error =
      rocegw::client::Accept(id, param != nullptr ? *param : rocegw::client::kDefaults);
  if (error != 0) return CmError(error);
  // The answer of a datagram service has no later event.
  return rdma->qp_type == IBV_QPT_UD ? 0 : Complete(id);
}

ROCEGW_EXPORT int rdma_reject(rdma_cm_id* rdma, const void* data, uint8_t length) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_reject)(real, data, length);
  return CmError(rocegw::client::Reject(FromRdma(rdma), data, length, rocegw::client::kConsumer));
}

ROCEGW_EXPORT int rdma_reject_ece(rdma_cm_id* rdma, const void* data, uint8_t length) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_reject_ece)(real, data, length);
  return CmError(
      rocegw::client::Reject(FromRdma(rdma), data, length, rocegw::client::kVendorOption));
}

ROCEGW_EXPORT int rdma_establish(rdma_cm_id* rdma) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_establish)(real);
  if (rdma->qp != nullptr) return CmError(EINVAL);  // otherwise done before ESTABLISHED is reported
  CmId* id = FromRdma(rdma);
  return CmError(id->session->CallObject(ROCEGW_MSG_CM_ESTABLISH, id->handle));
}

ROCEGW_EXPORT int rdma_disconnect(rdma_cm_id* rdma) {
  if (rdma_cm_id* real = RealOf(rdma)) return FinishReal(rdma, ROCEGW_REAL(rdma_disconnect)(real));
  CmId* id = FromRdma(rdma);
  // A call that waits for the event must know that there will be one.
  const CmStage right = id->synchronous == 0 ? CmStage::kConnected : CmStage::kAsked;
  const int error = rocegw::client::StepWithQp(id, right, ROCEGW_MSG_CM_DISCONNECT, IBV_QPS_ERR);
  return error != 0 ? CmError(error) : Complete(id);
}

ROCEGW_EXPORT int rdma_notify(rdma_cm_id* rdma, ibv_event_type event) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_notify)(real, event);
  rocegw_cm_notify request = {};
  request.event = event;
  return CmError(CmCall(FromRdma(rdma), ROCEGW_MSG_CM_NOTIFY, &request));
}
