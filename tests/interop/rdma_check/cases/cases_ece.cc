// SPDX-License-Identifier: Apache-2.0
// Enhanced connection establishment as the manual pages have it: what a program sets reaches its
// peer unchanged, both ways, for queue pairs that the connection manager does not own. Devices
// without ECE of their own answer EOPNOTSUPP to the verbs; the values of rdma_cm travel all the
// same.
#include <cerrno>
#include <string>
#include <vector>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/cm_channel.h"
#include "tests/interop/rdma_check/connection.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

// Of no device here, so that nobody takes the options for its own.
constexpr uint32_t kVendor = 0x0ACE5E;
constexpr uint32_t kAsked = 0x7;
constexpr uint32_t kAnswered = 0x5;

// A queue pair that its program made and moves by itself.
class OwnQp {
 public:
  OwnQp(rdma_cm_id* id, bool use_events)
      : id_(id), pd_(ibv_alloc_pd(id->verbs)), cq_(id->verbs, 8, use_events) {
    CheckErrno(pd_ != nullptr, "ibv_alloc_pd");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.cq();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 2,
                .max_recv_wr = 2,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qp_ = ibv_create_qp(pd_.get(), &init);
    CheckErrno(qp_ != nullptr, "ibv_create_qp");
  }
  ~OwnQp() { ibv_destroy_qp(qp_); }
  OwnQp(const OwnQp&) = delete;
  OwnQp& operator=(const OwnQp&) = delete;

  void MoveTo(ibv_qp_state state) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = state;
    CheckErrno(rdma_init_qp_attr(id_, &attr, &mask) == 0, "rdma_init_qp_attr");
    const int error = ibv_modify_qp(qp_, &attr, mask);
    Check(error == 0, "ibv_modify_qp to state ", static_cast<int>(state), ": ", error);
  }
  ibv_qp* get() { return qp_; }

 private:
  rdma_cm_id* id_;
  Owned<ibv_pd> pd_;
  Completions cq_;
  ibv_qp* qp_ = nullptr;
};

rdma_conn_param ParametersFor(OwnQp& qp) {
  rdma_conn_param param{};
  param.responder_resources = 1;
  param.initiator_depth = 1;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  param.qp_num = qp.get()->qp_num;
  return param;
}

void SetLocal(rdma_cm_id* id, uint32_t options) {
  ibv_ece ece{0, options, 0};
  Check(rdma_set_local_ece(id, &ece) == -1 && errno == EINVAL, "vendor ID 0 was taken");
  ece = {kVendor, options, 1};
  Check(rdma_set_local_ece(id, &ece) == -1 && errno == EINVAL, "comp_mask 1 was taken");
  ece.comp_mask = 0;
  CheckErrno(rdma_set_local_ece(id, &ece) == 0, "rdma_set_local_ece");
}

void CheckRemote(rdma_cm_id* id, uint32_t options) {
  ibv_ece ece{};
  CheckErrno(rdma_get_remote_ece(id, &ece) == 0, "rdma_get_remote_ece");
  Check(ece.vendor_id == kVendor && ece.options == options, "peer's ECE came as ", ece.vendor_id,
        "/", ece.options);
}

// Before RTR. False: the device has none.
bool CheckVerbs(OwnQp& qp) {
  ibv_ece offered{};
  const int error = ibv_query_ece(qp.get(), &offered);
  if (error == EOPNOTSUPP) {
    Check(ibv_set_ece(qp.get(), &offered) == EOPNOTSUPP, "ECE can be set but not read");
    return false;
  }
  Check(error == 0, "ibv_query_ece: ", error);
  Check(offered.vendor_id != 0 && offered.comp_mask == 0, "no vendor ID is offered");
  ibv_ece wrong{kVendor, 1, 0};
  Check(ibv_set_ece(qp.get(), &wrong) == EINVAL, "another vendor's ECE was taken");
  wrong = {offered.vendor_id, offered.options, 1};
  Check(ibv_set_ece(qp.get(), &wrong) == EINVAL, "comp_mask 1 was taken");
  ibv_ece all{offered.vendor_id, UINT32_MAX, 0};
  Check(ibv_set_ece(qp.get(), &all) == 0, "ibv_set_ece");
  Check(all.vendor_id == offered.vendor_id && all.options == offered.options, "accepted are ",
        all.options, " of ", offered.options);
  ibv_ece none{offered.vendor_id, 0, 0};
  Check(ibv_set_ece(qp.get(), &none) == 0 && none.options == 0, "no options could not be set");
  Check(ibv_query_ece(qp.get(), &none) == 0 && none.options == 0, "options came back");
  return true;
}

void CheckTooLate(OwnQp& qp, bool has_ece) {
  if (!has_ece) return;
  ibv_ece ece{};
  Check(ibv_query_ece(qp.get(), &ece) == 0, "ibv_query_ece after RTR");
  Check(ibv_set_ece(qp.get(), &ece) == EINVAL, "ECE was set after RTR");
}

void Ece(Session& session, bool by_client) {
  CmChannel channel;
  const bool use_events = session.settings.use_events;
  if (session.is_client != by_client) {
    const OwnedId listener = CreateId(channel);
    session.control.Send(
        "data", std::to_string(ListenAnyPort(listener.get(), session.control.LocalAddress())));
    const CmEvent request = channel.Expect(RDMA_CM_EVENT_CONNECT_REQUEST, "listening");
    const OwnedId id(request.id);
    CheckRemote(id.get(), kAsked);
    OwnQp qp(id.get(), use_events);
    const bool has_ece = CheckVerbs(qp);
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) qp.MoveTo(state);
    CheckTooLate(qp, has_ece);
    SetLocal(id.get(), kAnswered);
    rdma_conn_param param = ParametersFor(qp);
    CheckErrno(rdma_accept(id.get(), &param) == 0, "rdma_accept");
    channel.Expect(RDMA_CM_EVENT_ESTABLISHED, "accepting");
    session.control.Sync("connected");
    channel.Expect(RDMA_CM_EVENT_DISCONNECTED, "connected");
    rdma_disconnect(id.get());
    session.control.Sync("disconnected");
    return;
  }
  const auto port = static_cast<uint16_t>(std::stoul(session.control.Expect("data")));
  const OwnedId id = CreateId(channel);
  Resolve(channel, id.get(), session.control.PeerAddress(), port);
  OwnQp qp(id.get(), use_events);
  const bool has_ece = CheckVerbs(qp);
  SetLocal(id.get(), kAsked);
  rdma_conn_param param = ParametersFor(qp);
  CheckErrno(rdma_connect(id.get(), &param) == 0, "rdma_connect");
  channel.Expect(RDMA_CM_EVENT_CONNECT_RESPONSE, "connecting");
  CheckRemote(id.get(), kAnswered);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) qp.MoveTo(state);
  CheckTooLate(qp, has_ece);
  CheckErrno(rdma_establish(id.get()) == 0, "rdma_establish");
  session.control.Sync("connected");
  CheckErrno(rdma_disconnect(id.get()) == 0, "rdma_disconnect");
  channel.Expect(RDMA_CM_EVENT_DISCONNECTED, "disconnecting");
  session.control.Sync("disconnected");
}

}  // namespace

std::vector<Case> EceCases() { return {{"connect.ece", true, Needs::kCm, Ece}}; }

}  // namespace rocegw::interop
