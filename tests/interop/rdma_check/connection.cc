// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/connection.h"

#include <endian.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <random>
#include <sstream>

#include "tests/interop/rdma_check/cm_channel.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

// 67 ms; an emulated peer needs its time to answer.
constexpr uint8_t kAckTimeout = 14;
constexpr uint8_t kMinRnrTimer = 12;  // 0.64 ms
constexpr size_t kRequestPrivateData = 56;
constexpr size_t kReplyPrivateData = 196;

ibv_mtu MtuCode(uint32_t bytes) {
  for (int code = IBV_MTU_256; code <= IBV_MTU_4096; ++code) {
    if (128U << code == bytes) return static_cast<ibv_mtu>(code);
  }
  Fail("no such path MTU: ", bytes);
}

std::string PrivateData(const char* who, uint64_t index, size_t length) {
  std::string data(length, '\0');
  FillPattern(index * 2 + (who[0] == 'q' ? 1 : 0), 0, reinterpret_cast<uint8_t*>(data.data()),
              length);
  data[0] = static_cast<char>(index);
  return data;
}

std::string Format(const PeerQp& qp) {
  std::ostringstream out;
  out << std::hex << qp.number << ' ' << qp.psn << ' ' << be64toh(qp.gid.global.subnet_prefix)
      << ' ' << be64toh(qp.gid.global.interface_id);
  return out.str();
}

PeerQp ParsePeer(const std::string& text) {
  std::istringstream in(text);
  PeerQp peer{};
  uint64_t prefix = 0;
  uint64_t interface = 0;
  in >> std::hex >> peer.number >> peer.psn >> prefix >> interface;
  Check(!in.fail(), "peer sent '", text, "' for a queue pair");
  peer.gid.global.subnet_prefix = htobe64(prefix);
  peer.gid.global.interface_id = htobe64(interface);
  return peer;
}

}  // namespace

void ToInit(ibv_qp* qp, unsigned more_access) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | more_access;
  CheckCode(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            "ibv_modify_qp to INIT");
}

void ToReadyToReceive(ibv_qp* qp, const PeerQp& peer, uint8_t gid_index, uint32_t mtu,
                      uint8_t read_depth) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = MtuCode(mtu);
  attr.dest_qp_num = peer.number;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = read_depth;
  attr.min_rnr_timer = kMinRnrTimer;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.sgid_index = gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.port_num = 1;
  CheckCode(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "ibv_modify_qp to RTR with MTU ", mtu);
}

void ToReadyToSend(ibv_qp* qp, uint32_t psn, const ConnectionOptions& options) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = kAckTimeout;
  attr.retry_cnt = options.retry_count;
  attr.rnr_retry = options.rnr_retry;
  attr.sq_psn = psn;
  attr.max_rd_atomic = options.read_depth;
  CheckCode(ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            "ibv_modify_qp to RTS");
}

void ToError(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  CheckCode(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp to ERR");
}

Connection::Connection(const ConnectionOptions& options, uint64_t arena_seed, bool use_events)
    : options_(options), arena_(arena_seed), use_events_(use_events) {}

Connection::Connection(Session& session, const ConnectionOptions& options)
    : Connection(options, session.settings.seed + (session.is_client ? 1 : 2),
                 session.settings.use_events || options.force_events) {
  if (session.settings.use_cm) {
    ConnectByCm(session);
  } else {
    ConnectBySocket(session);
  }
  for (ibv_qp* qp : qps_) numbers_.push_back(qp->qp_num);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  CheckCode(ibv_query_qp(qps_[0], &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_CAP, &init),
            "ibv_query_qp");
  Check(attr.qp_state == IBV_QPS_RTS, "connected queue pair is in state ", int{attr.qp_state});
  path_mtu_ = 128U << attr.path_mtu;
  inline_bytes_ = init.cap.max_inline_data;
  ExchangeMemory(session);
}

Connection::~Connection() {
  if (ids_.empty()) {
    for (ibv_qp* qp : qps_) {
      if (qp != nullptr) ibv_destroy_qp(qp);
    }
  }
  for (rdma_cm_id* id : ids_) {
    if (id->qp != nullptr) rdma_destroy_qp(id);
  }
  send_.reset();
  receive_.reset();
  mr_.reset();
  own_pd_.reset();
  for (rdma_cm_id* id : ids_) rdma_destroy_id(id);
}

ibv_qp_init_attr Connection::InitAttributes() {
  ibv_qp_init_attr init{};
  init.send_cq = send_->cq();
  init.recv_cq = receive_->cq();
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = options_.signal_all ? 1 : 0;
  init.cap.max_send_wr = options_.depth;
  init.cap.max_recv_wr = options_.depth;
  init.cap.max_send_sge = options_.sges;
  init.cap.max_recv_sge = options_.sges;
  init.cap.max_inline_data = options_.inline_bytes;
  return init;
}

ibv_qp_init_attr_ex Connection::InitWithCalls() {
  const ibv_qp_init_attr plain = InitAttributes();
  ibv_qp_init_attr_ex init{};
  init.send_cq = plain.send_cq;
  init.recv_cq = plain.recv_cq;
  init.qp_type = plain.qp_type;
  init.sq_sig_all = plain.sq_sig_all;
  init.cap = plain.cap;
  init.pd = pd_;
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = options_.send_ops;
  return init;
}

void Connection::CreateCommon(ibv_context* context) {
  own_pd_.reset(ibv_alloc_pd(context));
  CheckErrno(own_pd_ != nullptr, "ibv_alloc_pd");
  pd_ = own_pd_.get();
  const int access = kAllAccess | static_cast<int>(options_.more_access);
  mr_.reset(ibv_reg_mr(pd_, arena_.at(0), Arena::kSize, access));
  CheckErrno(mr_ != nullptr, "ibv_reg_mr of ", Arena::kSize);
  const int depth = static_cast<int>(options_.depth * options_.qps);
  send_ = std::make_unique<Completions>(context, depth, use_events_);
  receive_ = std::make_unique<Completions>(context, depth, use_events_);
}

void Connection::ConnectBySocket(Session& session) {
  const sockaddr_storage local = session.control.LocalAddress();
  context_ = OpenDeviceOf(local);
  const ibv_gid gid = GidOf(local);
  const uint8_t gid_index = GidIndex(context_.get(), gid);
  CreateCommon(context_.get());
  std::mt19937_64 random(session.settings.seed * 2 + (session.is_client ? 1 : 0));
  for (uint32_t i = 0; i < options_.qps; ++i) {
    ibv_qp_init_attr init = InitAttributes();
    ibv_qp_init_attr_ex with_calls = InitWithCalls();
    ibv_qp* qp = options_.send_ops == 0 ? ibv_create_qp(pd_, &init)
                                        : ibv_create_qp_ex(context_.get(), &with_calls);
    CheckErrno(qp != nullptr, "ibv_create_qp");
    qps_.push_back(qp);
    ToInit(qp, (options_.send_ops & kWithFlush) != 0 ? kFlushGlobal : 0);
    // The first starts close to the end of the number space, so that a case of any size wraps.
    const uint32_t psn = i == 0 ? 0xFFFFF0 : static_cast<uint32_t>(random() & 0xFFFFFF);
    const PeerQp peer =
        ParsePeer(session.control.Exchange(Format({.number = qp->qp_num, .psn = psn, .gid = gid})));
    ToReadyToReceive(qp, peer, gid_index, session.settings.mtu, options_.read_depth);
    ToReadyToSend(qp, psn, options_);
  }
  session.control.Sync("connected");
}

void Connection::ConnectByCm(Session& session) {
  channel_ = std::make_unique<CmChannel>();
  rdma_conn_param param{};
  param.responder_resources = options_.read_depth;
  param.initiator_depth = options_.read_depth;
  param.retry_count = options_.retry_count;
  param.rnr_retry_count = options_.rnr_retry;
  const auto add_qp = [&](rdma_cm_id* id) {
    if (pd_ == nullptr) CreateCommon(id->verbs);
    ibv_qp_init_attr init = InitAttributes();
    ibv_qp_init_attr_ex with_calls = InitWithCalls();
    const int made = options_.send_ops == 0 ? rdma_create_qp(id, pd_, &init)
                                            : rdma_create_qp_ex(id, &with_calls);
    CheckErrno(made == 0, "rdma_create_qp");
    qps_.push_back(id->qp);
  };

  if (!session.is_client) {
    const OwnedId listener = CreateId(*channel_);
    const uint16_t port = ListenAnyPort(listener.get(), session.control.LocalAddress());
    session.control.Send("data", std::to_string(port));
    for (uint32_t i = 0; i < options_.qps; ++i) {
      const CmEvent request = channel_->Expect(RDMA_CM_EVENT_CONNECT_REQUEST, "listening");
      ids_.push_back(request.id);
      Check(request.listen_id == listener.get(), "connect request names another listener");
      // librdmacm hands out the whole field of the request, zero-padded.
      const std::string expected = PrivateData("request", i, kRequestPrivateData);
      Check(request.private_data.compare(0, kRequestPrivateData, expected) == 0,
            "private data of connect request ", i, " differs");
      Check(request.responder_resources == options_.read_depth &&
                request.initiator_depth == options_.read_depth,
            "connect request carries other READ depths: ", int{request.responder_resources},
            " and ", int{request.initiator_depth});
      add_qp(request.id);
      const std::string reply = PrivateData("reply", i, kReplyPrivateData);
      param.private_data = reply.data();
      param.private_data_len = static_cast<uint8_t>(reply.size());
      CheckErrno(rdma_accept(request.id, &param) == 0, "rdma_accept");
      const CmEvent up = channel_->Expect(RDMA_CM_EVENT_ESTABLISHED, "accepted a connection");
      Check(up.id == request.id, "established event for another id");
    }
  } else {
    const uint16_t port = static_cast<uint16_t>(std::stoul(session.control.Expect("data")));
    for (uint32_t i = 0; i < options_.qps; ++i) {
      ids_.push_back(CreateId(*channel_).release());
      rdma_cm_id* id = ids_.back();
      Resolve(*channel_, id, session.control.PeerAddress(), port);
      add_qp(id);
      const std::string request = PrivateData("request", i, kRequestPrivateData);
      param.private_data = request.data();
      param.private_data_len = static_cast<uint8_t>(request.size());
      CheckErrno(rdma_connect(id, &param) == 0, "rdma_connect");
      const CmEvent up = channel_->Expect(RDMA_CM_EVENT_ESTABLISHED, "connecting");
      const std::string expected = PrivateData("reply", i, kReplyPrivateData);
      Check(up.private_data.compare(0, kReplyPrivateData, expected) == 0, "private data of reply ",
            i, " differs");
    }
  }
}

void Connection::ExchangeMemory(Session& session) {
  std::ostringstream mine;
  const std::string device = ibv_get_device_name(qps_[0]->context->device);
  local_is_rxe_ = device.compare(0, 3, "rxe") == 0;
  mine << arena_.address(0) << ' ' << mr_->rkey << ' ' << path_mtu_ << ' ' << local_is_rxe_;
  std::istringstream theirs(session.control.Exchange(mine.str()));
  uint32_t mtu = 0;
  theirs >> remote_base_ >> rkey_ >> mtu >> remote_is_rxe_;
  Check(!theirs.fail(), "peer's memory region not understood");
  Check(mtu == path_mtu_, "path MTU is ", path_mtu_, " here and ", mtu, " at the peer");
}

uint32_t Connection::IndexOf(uint32_t qp_num) const {
  for (uint32_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i] == qp_num) return i;
  }
  Fail("completion names unknown queue pair ", qp_num);
}

void Connection::Close(Session& session, bool client_disconnects) {
  session.control.Sync("closing");
  if (ids_.empty()) return;
  if (session.is_client == client_disconnects) {
    for (rdma_cm_id* id : ids_) CheckErrno(rdma_disconnect(id) == 0, "rdma_disconnect");
  }
  size_t down = 0;
  while (down < ids_.size()) {
    const CmEvent event = channel_->Wait("disconnecting");
    if (event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) continue;
    Check(event.type == RDMA_CM_EVENT_DISCONNECTED, "CM event ", rdma_event_str(event.type),
          " instead of a disconnect");
    ++down;
    if (session.is_client != client_disconnects) {
      CheckErrno(rdma_disconnect(event.id) == 0, "rdma_disconnect after the peer's");
    }
  }
  session.control.Sync("closed");
}

bool Connection::DisconnectSeen() {
  if (!channel_ || !channel_->Pending()) return false;
  channel_->Expect(RDMA_CM_EVENT_DISCONNECTED, "while connected");
  return true;
}

void Connection::Destroy(uint32_t i) {
  if (!ids_.empty()) {
    rdma_destroy_qp(ids_[i]);
  } else {
    CheckCode(ibv_destroy_qp(qps_[i]), "ibv_destroy_qp");
  }
  qps_[i] = nullptr;
}

ibv_qp_state Connection::State(uint32_t i) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  CheckCode(ibv_query_qp(qps_[i], &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return attr.qp_state;
}

}  // namespace rocegw::interop
