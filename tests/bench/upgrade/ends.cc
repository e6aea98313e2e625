// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/upgrade/ends.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/connected.h"

namespace rocegw::bench {

void Fail(const char* what) {
  std::printf("verified_echo: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

namespace {

// Receives that are posted between an event of the limit and the next setting of it.
constexpr uint32_t kUntilLimit = 256;

void Tell(int socket, const void* what, size_t length) {
  if (send(socket, what, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) Fail("send");
}
void Hear(int socket, void* what, size_t length) {
  if (recv(socket, what, length, MSG_WAITALL) != static_cast<ssize_t>(length)) Fail("no peer");
}

}  // namespace

Ends::Ends(int socket, int gid_index, Shape shape)
    : socket_(socket), gid_index_(gid_index), shape_(shape) {
  const bool client = shape.queue_pairs != 0;
  if (client) {
    Tell(socket_, &shape_, sizeof shape_);
  } else {
    Hear(socket_, &shape_, sizeof shape_);
  }
  Open();
  Make();
  Introduce();
}

void Ends::Open() {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  context_ = devices != nullptr && devices[0] != nullptr ? ibv_open_device(devices[0]) : nullptr;
  if (context_ == nullptr) Fail("no device");
  if (fcntl(context_->async_fd, F_SETFL, O_NONBLOCK) != 0) Fail("fcntl");
  pd_ = ibv_alloc_pd(context_);
  channel_ = ibv_create_comp_channel(context_);
  if (pd_ == nullptr || channel_ == nullptr) Fail("ibv_alloc_pd");
  const uint32_t entries = shape_.queue_pairs * (kWindow + kReceives);
  cq_ = ibv_create_cq(context_, static_cast<int>(entries), nullptr, channel_, 0);
  if (cq_ == nullptr || ibv_req_notify_cq(cq_, 0) != 0) Fail("ibv_create_cq");
  stride_ = (shape_.length + kUdHeader + 63) & ~63u;
  const uint64_t slots = uint64_t{shape_.queue_pairs} * (kWindow + kReceives);
  shape_.bytes = std::max(shape_.bytes, slots * stride_);
  memory_ = static_cast<uint8_t*>(
      mmap(nullptr, shape_.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory_ == MAP_FAILED) Fail("mmap");
  std::memset(memory_, 0x5C, shape_.bytes);
  receives_ = memory_ + uint64_t{shape_.queue_pairs} * kWindow * stride_;
  mr_ = ibv_reg_mr(pd_, memory_, shape_.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (mr_ == nullptr) Fail("ibv_reg_mr");
}

// Each connection has a queue pair that sends and one that receives for the domain.
void Ends::MakeXrc() {
  ibv_xrcd_init_attr domain{};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  domain.oflags = O_CREAT;
  ibv_xrcd* const xrcd = ibv_open_xrcd(context_, &domain);
  if (xrcd == nullptr) Fail("ibv_open_xrcd");
  ibv_srq_init_attr_ex shared{};
  shared.attr = {shape_.queue_pairs * kReceives, 1, 0};
  shared.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  shared.srq_type = IBV_SRQT_XRC;
  shared.pd = pd_;
  shared.xrcd = xrcd;
  shared.cq = cq_;
  srq_ = ibv_create_srq_ex(context_, &shared);
  if (srq_ == nullptr) Fail("ibv_create_srq_ex");
  for (uint32_t at = 0; at < shape_.queue_pairs; ++at) {
    ibv_qp_init_attr_ex send{};
    send.qp_type = IBV_QPT_XRC_SEND;
    send.send_cq = cq_;
    send.cap = {kWindow, 0, 1, 0, 0};
    send.sq_sig_all = 1;
    send.comp_mask = IBV_QP_INIT_ATTR_PD;
    send.pd = pd_;
    qps_.push_back(ibv_create_qp_ex(context_, &send));
    ibv_qp_init_attr_ex receive{};
    receive.qp_type = IBV_QPT_XRC_RECV;
    receive.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    receive.xrcd = xrcd;
    targets_.push_back(ibv_create_qp_ex(context_, &receive));
    if (qps_.back() == nullptr || targets_.back() == nullptr) Fail("ibv_create_qp_ex");
    by_number_.emplace_back(targets_.back()->qp_num, at);
  }
  std::ranges::sort(by_number_);
}

void Ends::Make() {
  if (shape_.xrc != 0) return MakeXrc();
  if (shape_.shared != 0) {
    ibv_srq_init_attr init{};
    init.attr = {shape_.queue_pairs * kReceives, 1, 0};
    srq_ = ibv_create_srq(pd_, &init);
    if (srq_ == nullptr) Fail("ibv_create_srq");
  }
  for (uint32_t at = 0; at < shape_.queue_pairs; ++at) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.srq = srq_;
    init.qp_type = shape_.ud != 0 ? IBV_QPT_UD : IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {kWindow, srq_ == nullptr ? kReceives : 0, 1, 1, 0};
    qps_.push_back(ibv_create_qp(pd_, &init));
    if (qps_.back() == nullptr) Fail("ibv_create_qp");
    by_number_.emplace_back(qps_.back()->qp_num, at);
  }
  std::ranges::sort(by_number_);
}

void Ends::Introduce() {
  std::vector<uint32_t> mine;
  for (const ibv_qp* const qp : qps_) mine.push_back(qp->qp_num);
  for (const ibv_qp* const qp : targets_) mine.push_back(qp->qp_num);
  if (shape_.xrc != 0 && ibv_get_srq_num(srq_, &mine.emplace_back()) != 0) Fail("ibv_get_srq_num");
  ibv_gid gid{}, peer{};
  if (ibv_query_gid(context_, 1, gid_index_, &gid) != 0) Fail("ibv_query_gid");
  peers_.resize(mine.size());
  Tell(socket_, &gid, sizeof gid);
  Tell(socket_, mine.data(), mine.size() * sizeof mine[0]);
  Hear(socket_, &peer, sizeof peer);
  Hear(socket_, peers_.data(), peers_.size() * sizeof peers_[0]);
  if (shape_.ud != 0) {
    ibv_ah_attr attr{};
    attr.is_global = attr.port_num = 1;
    attr.grh.dgid = peer;
    attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
    attr.grh.hop_limit = 64;
    ah_ = ibv_create_ah(pd_, &attr);
    if (ah_ == nullptr) Fail("ibv_create_ah");
  }
  if (shape_.xrc != 0) {
    peer_srq_ = peers_.back();
    for (uint32_t at = 0; at < qps_.size(); ++at) {
      ConnectXrc(qps_[at], peers_[qps_.size() + at], peer);
      ConnectXrc(targets_[at], peers_[at], peer);
    }
  } else {
    for (uint32_t at = 0; at < qps_.size(); ++at) Connect(at, peers_[at], peer);
  }
  for (uint32_t at = 0; at < qps_.size(); ++at)
    for (uint32_t i = 0; i < kReceives; ++i) Receive(uint64_t{at} * kReceives + i);
  if (shape_.shared != 0) SetLimit();
  // Neither end sends before the other one can receive.
  char ready = 'R';
  Tell(socket_, &ready, 1);
  Hear(socket_, &ready, 1);
}

void Ends::Connect(uint32_t at, uint32_t peer, const ibv_gid& gid) {
  const auto index = static_cast<uint8_t>(gid_index_);
  if (shape_.ud == 0) {
    if (!ConnectTo(qps_[at], peer, gid, index, IBV_MTU_1024)) Fail("ibv_modify_qp");
    return;
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kNumberOfUd;
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  if (ibv_modify_qp(qps_[at], &attr, kInit) != 0) Fail("ibv_modify_qp");
  attr.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(qps_[at], &attr, IBV_QP_STATE) != 0) Fail("ibv_modify_qp");
  attr.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(qps_[at], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) Fail("ibv_modify_qp");
}

void Ends::ConnectXrc(ibv_qp* qp, uint32_t peer, const ibv_gid& gid) const {
  const bool sends = qp->qp_type == IBV_QPT_XRC_SEND;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (ibv_modify_qp(qp, &attr, kInit) != 0) Fail("ibv_modify_qp INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_);
  attr.ah_attr.grh.hop_limit = 64;
  constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  constexpr int kResponds = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp, &attr, sends ? kRtr : kRtr | kResponds) != 0) Fail("ibv_modify_qp RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  constexpr int kRts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
  constexpr int kRequests = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  if (ibv_modify_qp(qp, &attr, sends ? kRts | kRequests : kRts) != 0) Fail("ibv_modify_qp RTS");
}

void Ends::Send(uint32_t at, uint32_t slot) {
  ibv_sge piece{reinterpret_cast<uint64_t>(SendSlot(at, slot)), shape_.length, mr_->lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr_id = uint64_t{at} * kWindow + slot;
  if (shape_.xrc != 0) request.qp_type.xrc.remote_srqn = peer_srq_;
  if (shape_.ud != 0) request.wr.ud = {ah_, peers_[at], kNumberOfUd};
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qps_[at], &request, &bad) != 0) Fail("ibv_post_send");
}

void Ends::Receive(uint64_t number) {
  ibv_sge piece{reinterpret_cast<uint64_t>(receives_ + number * stride_),
                static_cast<uint32_t>(stride_), mr_->lkey};
  ibv_recv_wr request{};
  request.wr_id = number;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = srq_ != nullptr ? ibv_post_srq_recv(srq_, &request, &bad)
                                    : ibv_post_recv(qps_[number / kReceives], &request, &bad);
  if (error != 0) Fail("ibv_post_recv");
  if (until_limit_ != 0 && --until_limit_ == 0) SetLimit();
}

uint32_t Ends::IndexOf(uint32_t qp_num) const {
  const auto found = std::ranges::lower_bound(by_number_, std::pair{qp_num, 0u});
  if (found == by_number_.end() || found->first != qp_num) Fail("completion of no queue pair");
  return found->second;
}

// The limit is reached as soon as a few receives are taken.
void Ends::SetLimit() {
  ibv_srq_attr attr{};
  attr.srq_limit = shape_.queue_pairs * kReceives - 1;
  if (ibv_modify_srq(srq_, &attr, IBV_SRQ_LIMIT) != 0) Fail("ibv_modify_srq");
}

void Ends::TakeEvents() {
  ibv_async_event event{};
  while (ibv_get_async_event(context_, &event) == 0) {
    if (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED) Fail(ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
    ++limits_reached_;
    until_limit_ = kUntilLimit;
  }
}

int Ends::Wait(ibv_wc* done, int most) {
  int count = ibv_poll_cq(cq_, most, done);
  if (count == 0) {
    pollfd wait[] = {{channel_->fd, POLLIN, 0}, {context_->async_fd, POLLIN, 0}};
    (void)poll(wait, 2, 50);
    if (wait[1].revents != 0) TakeEvents();
    if (wait[0].revents == 0) return 0;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(channel_, &cq, &context) != 0) Fail("ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(cq_, 0) != 0) Fail("ibv_req_notify_cq");
    count = ibv_poll_cq(cq_, most, done);
  }
  if (count < 0) Fail("ibv_poll_cq");
  return count;
}

}  // namespace rocegw::bench
